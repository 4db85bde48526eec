; Stores the blocks that are mixtures of registers.
define internal void @{name}(<32 x i64> %starts{arguments}) #1 {
entry:
  %list = alloca [32 x i64], align 64
  store <32 x i64> %starts, ptr %list, align 64
{mixtures}
{blocks}
  ret void
}
