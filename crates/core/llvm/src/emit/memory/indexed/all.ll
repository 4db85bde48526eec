; Elements at indices of 32 bits from a base, for all lanes.
define internal {all} @{name}(i64 %base, <32 x i32> %indices) #1 {
entry:
  %list = alloca <32 x i32>, align 64
  %index = freeze <32 x i32> %indices
  %index.a = extractelement <32 x i32> %index, i32 0
  %index.b = extractelement <32 x i32> %index, i32 1
  %lane.a = add i32 0, 0
  %lane.b = add i32 0, 1
{look}
; Do all lanes share one index?
alike:
  %first.all = shufflevector <32 x i32> %index, <32 x i32> poison, <32 x i32> zeroinitializer
  %unlike = icmp ne <32 x i32> %index, %first.all
  %unlike.bits = bitcast <32 x i1> %unlike to i32
  %is.same = icmp eq i32 %unlike.bits, 0
  br i1 %is.same, label %same, label %apart
same:
{same}
apart:
  store volatile <32 x i32> %index, ptr %list, align 64
{each}
}
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.cttz.i32(i32, i1)
{declared}
