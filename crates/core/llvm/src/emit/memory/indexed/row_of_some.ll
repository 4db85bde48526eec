  ; Are all indices those of one row? Near the ends of their range, indices of a row would wrap around.
  %i.row = sub i32 %index.a, %lane.a
  %begin.0 = insertelement <32 x i32> poison, i32 %i.row, i32 0
  %begin = shufflevector <32 x i32> %begin.0, <32 x i32> poison, <32 x i32> zeroinitializer
  %row = add <32 x i32> %begin, <{lanes}>
  %off = icmp ne <32 x i32> %index, %row
  %from.end = add <32 x i32> %index, splat (i32 {to_end})
  %near.end = icmp uge <32 x i32> %from.end, splat (i32 -64)
  %not.row = or <32 x i1> %off, %near.end
  %not.row.bits = bitcast <32 x i1> %not.row to i32
  %not.row.some = and i32 %not.row.bits, %mask
  %is.row = icmp eq i32 %not.row.some, 0
  br i1 %is.row, label %whole, label %alike
whole:
{row_pointer}
  %found = {load}
  ret {all} %found
