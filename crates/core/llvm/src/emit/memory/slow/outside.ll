; Lanes of a mask whose access of %bytes bytes lies outside a range, the objects of the device heap and, if generic,
; their local windows.
define internal i32 @margay.outside(ptr %ctx, i32 %mask, <32 x i64> %at, i64 %low, i64 %limit, i64 %bytes, i1 %generic) #2 {
  %low.one = insertelement <32 x i64> poison, i64 %low, i32 0
  %low.all = shufflevector <32 x i64> %low.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %limit.one = insertelement <32 x i64> poison, i64 %limit, i32 0
  %limit.all = shufflevector <32 x i64> %limit.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %offset = sub <32 x i64> %at, %low.all
  %outside = icmp uge <32 x i64> %offset, %limit.all
  %outside.bits = bitcast <32 x i1> %outside to i32
  %active = and i32 %outside.bits, %mask
  %any = icmp ne i32 %active, 0
  br i1 %any, label %heap, label %fine
heap:
  %missed = call i32 @margay.no.object(ptr %ctx, i32 %active, <32 x i64> %at, i64 %bytes)
  %rest = and i32 %missed, %active
  %some = icmp ne i32 %rest, 0
  %go.on = and i1 %some, %generic
  br i1 %go.on, label %local, label %done
local:
  %foreign = call i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %bytes)
  %left = and i32 %foreign, %rest
  ret i32 %left
done:
  ret i32 %rest
fine:
  ret i32 0
}
