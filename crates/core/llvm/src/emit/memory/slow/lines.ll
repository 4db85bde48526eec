; Whether lanes of a mask may not access %bytes bytes each, all in one allocation, or these are not aligned to 16 bytes.
define internal i32 @margay.lines(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes) #1 {
  %buffer = alloca <32 x i64>, align 64
  %low.one = insertelement <32 x i64> poison, i64 %low, i32 0
  %low.all = shufflevector <32 x i64> %low.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %limit.one = insertelement <32 x i64> poison, i64 %limit, i32 0
  %limit.all = shufflevector <32 x i64> %limit.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd = and <32 x i64> %at, splat (i64 15)
  %bent = icmp ne <32 x i64> %odd, zeroinitializer
  %bent.bits = bitcast <32 x i1> %bent to i32
  %misaligned = and i32 %bent.bits, %mask
  %some = icmp ne i32 %misaligned, 0
  br i1 %some, label %apart, label %aligned
aligned:
  %offset = sub <32 x i64> %at, %low.all
  %outside = icmp uge <32 x i64> %offset, %limit.all
  %outside.bits = bitcast <32 x i1> %outside to i32
  %rest = and i32 %outside.bits, %mask
  %any = icmp ne i32 %rest, 0
  br i1 %any, label %ask, label %fine
ask:
{ask_host}
  ret i32 %status
fine:
  ret i32 0
apart:
  ret i32 1
}
