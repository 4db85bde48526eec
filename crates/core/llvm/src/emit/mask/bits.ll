; The signs of words.
define internal i32 @margay.bits(<32 x i32> %signs) #1 {
  %mask = icmp slt <32 x i32> %signs, zeroinitializer
  %bits = bitcast <32 x i1> %mask to i32
  ret i32 %bits
}
