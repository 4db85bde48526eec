  br label %deep
deep:
  %k = phi i64 [ 0, %entry ], [ %k.next, %deeper ]
  %right.at = getelementptr [8 x double], ptr %right, i64 %k
  br label %block
block:
  %row = phi i64 [ 0, %deep ], [ %row.next, %block ]
  %sums.at = getelementptr [8 x double], ptr %sums, i64 %row
  %left.row = getelementptr [{depth} x double], ptr %left, i64 %row
  %left.at = getelementptr double, ptr %left.row, i64 %k
{loads}
{steps}
{stores}
  %row.next = add i64 %row, {rows}
  %again = icmp ult i64 %row.next, {all_rows}
  br i1 %again, label %block, label %deeper
deeper:
  %k.next = add i64 %k, {unrolled}
  %more = icmp ult i64 %k.next, {depth}
  br i1 %more, label %deep, label %done
done:
