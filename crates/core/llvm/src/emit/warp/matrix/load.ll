; Eight rows of 16 bytes, %byte bytes behind the addresses of a list, as one vector.
define internal <32 x i32> @margay.matrix.load(ptr %addresses, i64 %byte) #1 {
entry:
{pointers}
{rows}
{joined}
  ret <32 x i32> %v32.0
}
