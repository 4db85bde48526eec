; By the host's masked stores.
define internal void @margay.store.row.{t}.{width}({whole} %v, ptr %p, i32 %bits) #1 {
entry:
  br label %part0
{parts}
  ret void
}
declare void @{name}({part}, ptr{declared}, <{part_width} x i1>)
