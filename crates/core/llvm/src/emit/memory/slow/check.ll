; Slow path of the check of one access, %plus bytes behind the lanes' addresses: compares lane by lane, and asks the
; host about lanes that fail.
define internal i32 @margay.check(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %bytes, i1 %generic) #2 {
  %plus.one = insertelement <32 x i64> poison, i64 %plus, i32 0
  %plus.all = shufflevector <32 x i64> %plus.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd.one = insertelement <32 x i64> poison, i64 %odd, i32 0
  %odd.all = shufflevector <32 x i64> %odd.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %at = add <32 x i64> %from, %plus.all
  %odd.at = and <32 x i64> %at, %odd.all
  %misaligned = icmp ne <32 x i64> %odd.at, zeroinitializer
  %odd.bits = bitcast <32 x i1> %misaligned to i32
  %outside = call i32 @margay.outside(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes, i1 %generic)
  %bad = or i32 %outside, %odd.bits
  %active = and i32 %bad, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %ask, label %fine
ask:
  %status = call i32 @margay.ask(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at)
  ret i32 %status
fine:
  ret i32 0
}
