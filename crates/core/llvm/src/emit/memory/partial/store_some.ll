; Whole parts at once, the lanes of the others one by one.
define internal void @margay.store.row.{t}.{width}({whole} %v, ptr %p, i32 %bits) #1 {
entry:
  %in = alloca {whole}, align 64
  store {whole} %v, ptr %in, align 64
  br label %part0
{parts}
  %some = icmp ne i32 {rest}, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ {rest}, %{last} ], [ %rest, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %from = getelementptr {t}, ptr %in, i32 %lane
  %e = load {t}, ptr %from, align {bytes}
  %to = getelementptr {t}, ptr %p, i32 %lane
  store {t} %e, ptr %to, align {bytes}
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
  ret void
}
declare i32 @llvm.cttz.i32(i32, i1)
