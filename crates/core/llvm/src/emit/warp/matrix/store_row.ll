  %v{i} = shufflevector <32 x i32> %rows, <32 x i32> poison, <4 x i32> <{picks}>
  store <4 x i32> %v{i}, ptr %p{i}, align 16
