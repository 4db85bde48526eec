  %down{n} = sub {i} %old{n}, 1
  %zero{n} = icmp eq {i} %old{n}, 0
  %above{n} = icmp ugt {i} %old{n}, {v}
  %c{n} = or i1 %zero{n}, %above{n}
  %new{n} = select i1 %c{n}, {i} {v}, {i} %down{n}
