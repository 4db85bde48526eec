; Loads the mixtures of blocks to a buffer.
define internal void @{name}(<32 x i64> %starts, ptr %out) #1 {
entry:
  %list = alloca [32 x i64], align 64
  store <32 x i64> %starts, ptr %list, align 64
{blocks}
{mixtures}
{stores}
  ret void
}
