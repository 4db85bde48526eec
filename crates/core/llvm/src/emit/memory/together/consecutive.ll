; Rows of {row} lanes that begin at the addresses of their first lanes.
  %firsts = shufflevector <32 x i64> %at, <32 x i64> poison, <32 x i32> <{firsts}>
  %wanted = add <32 x i64> %firsts, <{steps}>
  %differ = icmp ne <32 x i64> %at, %wanted
  %differ.bits = bitcast <32 x i1> %differ to i32
  %scattered = icmp ne i32 %differ.bits, 0
  br i1 %scattered, label %single, label %rows
rows:
{starts}
{rows}
; Some row is not consecutive.
single:
