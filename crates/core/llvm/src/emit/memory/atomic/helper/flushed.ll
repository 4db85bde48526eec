  ; A subnormal becomes a zero of the same sign.
  %{v}.size = and i32 %{v}, 2147483647
  %{v}.small = icmp ult i32 %{v}.size, 8388608
  %{v}.zero = and i32 %{v}, -2147483648
  %{v}.flat = select i1 %{v}.small, i32 %{v}.zero, i32 %{v}
