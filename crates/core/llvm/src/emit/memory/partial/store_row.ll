define internal void @margay.store.{width}.{t}(ptr %at, {piece} %v, i32 %mask) #1 {
{on}
  call void @{name}({piece} %v, ptr {attribute}%at{argument}, <{width} x i1> %on)
  ret void
}
declare void @{name}({piece}, ptr{declared}, <{width} x i1>)
