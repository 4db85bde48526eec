; Loads lines %distance bytes apart if they may be accessed, and has the reference engine execute the instruction otherwise.
define internal i32 @{checked}(ptr %ctx, i32 %site, i32 %step, i64 %base, i64 %distance, i64 %low, i64 %limit, ptr %out{arguments}) #1 {
entry:
  %inputs = alloca [{rows} x <32 x i32>], align 64
  %results = alloca [{registers} x <32 x i32>], align 64
  %distance.one = insertelement <32 x i64> poison, i64 %distance, i32 0
  %distance.all = shufflevector <32 x i64> %distance.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %base.one = insertelement <32 x i64> poison, i64 %base, i32 0
  %base.all = shufflevector <32 x i64> %base.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %from = mul <32 x i64> %distance.all, <{lanes}>
  %starts = add <32 x i64> %base.all, %from
  %apart = call i32 @margay.lines(ptr %ctx, i32 %site, i32 {mask}, <32 x i64> %starts, i64 %low, i64 %limit, i64 {bytes})
  %slow = icmp ne i32 %apart, 0
  br i1 %slow, label %reference, label %native, !prof !0
native:
  call void @{name}(<32 x i64> %starts, ptr %out)
  ret i32 0
reference:
{inputs}
  %helpers.p = getelementptr i8, ptr %ctx, i64 {helpers}
  %helpers = load ptr, ptr %helpers.p, align 8
  %helper.p = getelementptr i8, ptr %helpers, i64 {effect}
  %helper = load ptr, ptr %helper.p, align 8
  %status = call i32 %helper(ptr %ctx, i32 %step, i32 -1, i32 -1, ptr %inputs, ptr %results)
{results}
  ret i32 %status
}
