  ; Are the indices of each eight lanes consecutive? Near the ends of their range, indices of a row would wrap around.
  %firsts = shufflevector <32 x i32> %index, <32 x i32> poison, <32 x i32> <{firsts}>
  %wanted = add <32 x i32> %firsts, <{steps}>
  %off = icmp ne <32 x i32> %index, %wanted
  %from.end = add <32 x i32> %index, splat (i32 {to_end})
  %near.end = icmp uge <32 x i32> %from.end, splat (i32 -64)
  %not.row = or <32 x i1> %off, %near.end
  %not.row.bits = bitcast <32 x i1> %not.row to i32
  %is.row = icmp eq i32 %not.row.bits, 0
  br i1 %is.row, label %whole, label %alike
whole:
{rows}
{joined}
