; Copies rows of words in the lanes of the mask.
define internal void @margay.rows.blend(ptr %to, ptr %from, i64 %rows, i32 %mask) #1 {
  %lanes = bitcast i32 %mask to <32 x i1>
  br label %row
row:
  %i = phi i64 [ 0, %0 ], [ %next, %row ]
  %at = shl i64 %i, 7
  %to.p = getelementptr i8, ptr %to, i64 %at
  %from.p = getelementptr i8, ptr %from, i64 %at
  %new = load <32 x i32>, ptr %from.p, align 32
  %old = load <32 x i32>, ptr %to.p, align 32
  %blended = select <32 x i1> %lanes, <32 x i32> %new, <32 x i32> %old
  store <32 x i32> %blended, ptr %to.p, align 32
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %rows
  br i1 %more, label %row, label %end
end:
  ret void
}
