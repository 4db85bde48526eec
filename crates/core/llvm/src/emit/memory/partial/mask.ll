  %{on}.at = lshr i32 %{bits}, {first}
  %{on}.low = trunc i32 %{on}.at to i{width}
  %{on} = bitcast i{width} %{on}.low to <{width} x i1>
