; Row by row.
{head}
  br label %next
next:
  %row = phi i64 [ 0, %entry ], [ %row.next, %next ]
  %half = lshr i64 %row, 3
  %at.half = mul i64 %half, {two_registers}
  %within = and i64 %row, 7
  %at.row = mul i64 %within, 16
  %at = add i64 %at.half, %at.row
  ; Even columns of C, then odd ones.
  %c0.from = getelementptr i8, ptr %in, i64 %at
  %c1.from = getelementptr i8, ptr %c0.from, i64 {register}
  %c0 = load <4 x i32>, ptr %c0.from, align 16
  %c1 = load <4 x i32>, ptr %c1.from, align 16
  %c = shufflevector <4 x i32> %c0, <4 x i32> %c1, <8 x i32> <{all}>
  %a = getelementptr [{pairs} x i32], ptr %left, i64 %row
{products}
  %d = {sum}
  %d0.to = getelementptr i8, ptr %out, i64 %at
  %d0.at = getelementptr i8, ptr %d0.to, i64 0
  %d0 = shufflevector <8 x i32> %d, <8 x i32> poison, <4 x i32> <{even}>
  store <4 x i32> %d0, ptr %d0.at, align 16
  %d1.to = getelementptr i8, ptr %out, i64 %at
  %d1.at = getelementptr i8, ptr %d1.to, i64 {register}
  %d1 = shufflevector <8 x i32> %d, <8 x i32> poison, <4 x i32> <{odd}>
  store <4 x i32> %d1, ptr %d1.at, align 16
  %row.next = add i64 %row, 1
  %more = icmp ult i64 %row.next, {rows}
  br i1 %more, label %next, label %done
done:
  ret void
}
declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)
declare <8 x i32> @llvm.sadd.sat.v8i32(<8 x i32>, <8 x i32>)
