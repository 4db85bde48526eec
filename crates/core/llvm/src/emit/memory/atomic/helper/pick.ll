  %c{n} = icmp {compare} {i} %old{n}, {v}
  %new{n} = select i1 %c{n}, {i} %old{n}, {i} {v}
