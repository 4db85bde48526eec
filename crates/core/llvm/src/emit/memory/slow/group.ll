; Checks a group as the host would, against the range cached for the single lanes of the site that leads it (%lead bytes
; into the table), and asks the host only if it does not hold all. %more is by how much the group is longer than the
; leading access.
define internal i32 @margay.check.group(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at, i64 %lead, i64 %least, i64 %more, i64 %odd, i64 %skew) #1 {
  %buffer = alloca <32 x i64>, align 64
  %sites.p = getelementptr i8, ptr %ctx, i64 {sites}
  %sites = load ptr, ptr %sites.p, align 8
  %low.p = getelementptr i8, ptr %sites, i64 %lead
  %low = load i64, ptr %low.p, align 8
  %limit.p = getelementptr i8, ptr %low.p, i64 8
  %limit = load i64, ptr %limit.p, align 8
  ; Addresses from which the whole group lies in the range.
  %places = call i64 @llvm.usub.sat.i64(i64 %limit, i64 %more)
  %first = sub i64 %low, %least
  %first.one = insertelement <32 x i64> poison, i64 %first, i32 0
  %first.all = shufflevector <32 x i64> %first.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %places.one = insertelement <32 x i64> poison, i64 %places, i32 0
  %places.all = shufflevector <32 x i64> %places.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %odd.one = insertelement <32 x i64> poison, i64 %odd, i32 0
  %odd.all = shufflevector <32 x i64> %odd.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %skew.one = insertelement <32 x i64> poison, i64 %skew, i32 0
  %skew.all = shufflevector <32 x i64> %skew.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %within = sub <32 x i64> %at, %first.all
  %outside = icmp uge <32 x i64> %within, %places.all
  %further = add <32 x i64> %at, %skew.all
  %odd.at = and <32 x i64> %further, %odd.all
  %misaligned = icmp ne <32 x i64> %odd.at, zeroinitializer
  %bad = or <32 x i1> %outside, %misaligned
  %bits = bitcast <32 x i1> %bad to i32
  %some = and i32 %bits, %mask
  %any = icmp ne i32 %some, 0
  br i1 %any, label %ask, label %fine
ask:
{ask_host}
  ret i32 %status
fine:
  ret i32 0
}
declare i64 @llvm.usub.sat.i64(i64, i64)
