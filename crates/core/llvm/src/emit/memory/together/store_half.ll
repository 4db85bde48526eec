  %piece{k} = shufflevector {all} %values, {all} poison, <{half} x i32> <{picks}>
  call void @{name}({part} %piece{k}, ptr {attribute}%base{k}{argument}, <{half} x i1> %half.on{k})
