  %sum{n} = fadd float %old{n}, {v}
  ; The NaN is canonicalized.
  %bits{n} = bitcast float %sum{n} to i32
  %size{n} = and i32 %bits{n}, 2147483647
  %nan{n} = icmp ugt i32 %size{n}, 2139095040
  %kept{n} = select i1 %nan{n}, i32 {nan}, i32 %bits{n}
  %new{n} = bitcast i32 %kept{n} to float
