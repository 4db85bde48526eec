; Whether the lanes may access all that a group accesses: %bytes bytes from %plus behind the checked address, in one
; allocation or in a lane's own window, aligned %skew bytes further. Returns 0 if they may; if not, nothing is said
; about the group's single accesses.
define internal i32 @margay.together(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %from, i64 %plus, i64 %low, i64 %limit, i64 %odd, i64 %skew, i64 %bytes, i1 %generic) #2 {
  %buffer = alloca <32 x i64>, align 64
  %plus.one = insertelement <32 x i64> poison, i64 %plus, i32 0
  %plus.all = shufflevector <32 x i64> %plus.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %skew.one = insertelement <32 x i64> poison, i64 %skew, i32 0
  %skew.all = shufflevector <32 x i64> %skew.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd.one = insertelement <32 x i64> poison, i64 %odd, i32 0
  %odd.all = shufflevector <32 x i64> %odd.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %at = add <32 x i64> %from, %plus.all
  %further = add <32 x i64> %at, %skew.all
  %odd.at = and <32 x i64> %further, %odd.all
  %misaligned = icmp ne <32 x i64> %odd.at, zeroinitializer
  %odd.bits = bitcast <32 x i1> %misaligned to i32
  %bent = and i32 %odd.bits, %mask
  %some = icmp ne i32 %bent, 0
  br i1 %some, label %apart, label %aligned
aligned:
  %outside = call i32 @margay.outside(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes, i1 %generic)
  %any = icmp ne i32 %outside, 0
  br i1 %any, label %ask, label %fine
ask:
{ask_host}
  ret i32 %status
fine:
  ret i32 0
apart:
  ret i32 1
}
