  %half0 = and i32 %mask, 65535
  %half1 = lshr i32 %mask, 16
{halves}
  %begin.low = insertelement <32 x i64> poison, i64 %begin0, i32 0
  %begin.both = insertelement <32 x i64> %begin.low, i64 %begin1, i32 {half}
  %begins = shufflevector <32 x i64> %begin.both, <32 x i64> poison, <32 x i32> <{firsts}>
  %row = add <32 x i64> %begins, <{steps}>
  %known = freeze <32 x i64> %at
  %off = icmp ne <32 x i64> %known, %row
  %off.bits = bitcast <32 x i1> %off to i32
  %off.some = and i32 %off.bits, %mask
  ; The address of the first lane of the mask.
  %empty = icmp eq i32 %half0, 0
  %first.at = select i1 %empty, i64 %first.at1, i64 %first.at0
  %found.rows = icmp eq i32 %off.some, 0
  br i1 %found.rows, label %one, label %{otherwise}
