  %word = insertelement <32 x i32> poison, i32 %mask, i32 0
  %words = shufflevector <32 x i32> %word, <32 x i32> poison, <32 x i32> zeroinitializer
  %signs = shl <32 x i32> %words, <{shifts}>
  %on = icmp slt <32 x i32> %signs, zeroinitializer
