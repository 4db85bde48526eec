; Some lanes of a row of {width}.
define internal {part} @margay.load.row.{t}.{width}(ptr %p, i32 %bits) #1 {
entry:
  %out = alloca {part}, align 64
  %all = icmp eq i32 %bits, {ones}
  br i1 %all, label %whole, label %partly
whole:
  %every = load {part}, ptr %p, align {bytes}
  ret {part} %every
; Unless the row lies on two pages, it exists as a whole if some of it does.
partly:
  %at = ptrtoint ptr %p to i64
  %in.page = and i64 %at, {page_mask}
  %one.page = icmp ule i64 %in.page, {last}
  %any = icmp ne i32 %bits, 0
  %near = and i1 %one.page, %any
  br i1 %near, label %among, label %apart
among:
  %row = load {part}, ptr %p, align {bytes}
{mask}
  %chosen = select <{width} x i1> %on, {part} %row, {part} zeroinitializer
  ret {part} %chosen
apart:
  store {part} zeroinitializer, ptr %out, align 64
  %some = icmp ne i32 %bits, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ %bits, %apart ], [ %rest, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %from = getelementptr {t}, ptr %p, i32 %lane
  %v = load {t}, ptr %from, align {bytes}
  %to = getelementptr {t}, ptr %out, i32 %lane
  store {t} %v, ptr %to, align {bytes}
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
  %found = load {part}, ptr %out, align 64
  ret {part} %found
}
declare i32 @llvm.cttz.i32(i32, i1)
