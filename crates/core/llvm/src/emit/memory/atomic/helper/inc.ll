  %up{n} = add {i} %old{n}, 1
  %c{n} = icmp uge {i} %old{n}, {v}
  %new{n} = select i1 %c{n}, {i} 0, {i} %up{n}
