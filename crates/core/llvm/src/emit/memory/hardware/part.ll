  %part{lane} = and i32 %mask, {bits}
  %none{lane} = icmp eq i32 %part{lane}, 0
  br i1 %none{lane}, label %over{lane}, label %on{lane}
on{lane}:
