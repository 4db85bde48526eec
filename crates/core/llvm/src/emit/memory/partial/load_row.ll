define internal {piece} @margay.load.{width}.{t}(ptr %at, i32 %mask) #1 {
{on}
  %v = call {piece} @{name}(ptr {attribute}%at{argument}, <{width} x i1> %on, {piece} zeroinitializer)
  ret {piece} %v
}
declare {piece} @{name}(ptr{declared}, <{width} x i1>, {piece})
