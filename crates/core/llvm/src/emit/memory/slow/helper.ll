  ; The addresses go to the host in the function's buffer.
  store <32 x i64> %at, ptr %buffer, align 64
  %helpers.p = getelementptr i8, ptr %ctx, i64 {helpers}
  %helpers = load ptr, ptr %helpers.p, align 8
  %helper.p = getelementptr i8, ptr %helpers, i64 {entry}
  %helper = load ptr, ptr %helper.p, align 8
  %status = call i32 %helper(ptr %ctx, i32 %site, i32 %mask, ptr %buffer{more})
