; Stores a vector as eight rows of 16 bytes, %byte bytes behind the addresses of a list.
define internal void @margay.matrix.store(ptr %addresses, i64 %byte, <32 x i32> %rows) #1 {
entry:
{pointers}
{stores}
  ret void
}
