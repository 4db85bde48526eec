; Elements at indices of 32 bits from a base, for the lanes of a mask; zeros for the others.
define internal {all} @{name}(i64 %base, <32 x i32> %indices, i32 %mask) #1 {
entry:
  %list = alloca <32 x i32>, align 64
  %index = freeze <32 x i32> %indices
  store volatile <32 x i32> %index, ptr %list, align 64
{few}
many:
{on}
  ; The first two lanes.
  %lane.a = call i32 @llvm.cttz.i32(i32 %mask, i1 true)
  %less.a = sub i32 %mask, 1
  %others = and i32 %mask, %less.a
  %lane.b = call i32 @llvm.cttz.i32(i32 %others, i1 true)
  %p.a = getelementptr i32, ptr %list, i32 %lane.a
  %p.b = getelementptr i32, ptr %list, i32 %lane.b
  %index.a = load i32, ptr %p.a, align 4
  %index.b = load i32, ptr %p.b, align 4
  %first.0 = insertelement <32 x i32> poison, i32 %index.a, i32 0
  %first = shufflevector <32 x i32> %first.0, <32 x i32> poison, <32 x i32> zeroinitializer
{look}
; Do all lanes share one index?
alike:
  %unlike = icmp ne <32 x i32> %index, %first
  %unlike.bits = bitcast <32 x i1> %unlike to i32
  %unlike.some = and i32 %unlike.bits, %mask
  %is.same = icmp eq i32 %unlike.some, 0
  br i1 %is.same, label %same, label %apart
same:
{same}
; Many lanes: inactive ones load what the first active one does.
apart:
  %safe = select <32 x i1> %on, <32 x i32> %index, <32 x i32> %first
  store volatile <32 x i32> %safe, ptr %list, align 64
{each}
; Few lanes.
loop:
{one_by_one}
  ret {all} %result
}
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.cttz.i32(i32, i1)
{declared}
