; Words with the bits as signs.
define internal <32 x i32> @margay.lanes(i32 %bits) #1 {
  %one = insertelement <32 x i32> poison, i32 %bits, i32 0
  %all = shufflevector <32 x i32> %one, <32 x i32> poison, <32 x i32> zeroinitializer
  %signs = shl <32 x i32> %all, {shifts}
  ret <32 x i32> %signs
}
