; The product of doubles, row by row, from and to places with the registers of A, B, C and D, which may be C's.
define internal void @{name}(ptr %a, ptr %b, ptr %c, ptr %d) #1 {
entry:
{right}
  br label %next
next:
  %row = phi i64 [ 0, %entry ], [ %row.next, %next ]
  %at = mul i64 %row, 32
  %a.row = getelementptr i8, ptr %a, i64 %at
  %c.row = getelementptr i8, ptr %c, i64 %at
  %d.row = getelementptr i8, ptr %d, i64 %at
{rows}
  %row.next = add i64 %row, 1
  %more = icmp ult i64 %row.next, 8
  br i1 %more, label %next, label %done
done:
  ret void
}
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
