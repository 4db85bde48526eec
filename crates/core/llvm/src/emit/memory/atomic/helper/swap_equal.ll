  %c{n} = icmp eq {i} %old{n}, {v}
  %new{n} = select i1 %c{n}, {i} %n{n}, {i} %old{n}
