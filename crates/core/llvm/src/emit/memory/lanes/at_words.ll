; The addresses are a base and a word for each lane.
define internal {result} @{name}.at({own}) #1 {
  %wide = zext <32 x i32> %words to <32 x i64>
  %one = insertelement <32 x i64> poison, i64 %base, i32 0
  %bases = shufflevector <32 x i64> %one, <32 x i64> poison, <32 x i32> zeroinitializer
  %at = add <32 x i64> %bases, %wide
  {assign}call {result} @{name}({args})
  ret {result}{value}
}
