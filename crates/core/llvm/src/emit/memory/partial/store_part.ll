part{k}:
  %bits.at{k} = lshr i32 %bits, {first}
  %bits{k} = trunc i32 %bits.at{k} to i{width}
  %v{k} = shufflevector {whole} %v, {whole} poison, <{width} x i32> <{picks}>
  %p{k} = getelementptr {t}, ptr %p, i32 {first}
  %full{k} = icmp eq i{width} %bits{k}, -1
  br i1 %full{k}, label %whole{k}, label %other{k}
whole{k}:
  store {part} %v{k}, ptr %p{k}, align {bytes}
  br label %after{k}
other{k}:
{masked}
  br label %after{k}
after{k}:
