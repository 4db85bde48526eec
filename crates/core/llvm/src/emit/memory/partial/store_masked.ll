  %none{k} = icmp eq i{width} %bits{k}, 0
  br i1 %none{k}, label %after{k}, label %some{k}
some{k}:
{mask}
  call void @{name}({part} %v{k}, ptr {attribute}%p{k}{argument}, <{width} x i1> %on{k})
