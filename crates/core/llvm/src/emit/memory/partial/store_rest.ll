  %drop{k} = select i1 %full{k}, i32 {without}, i32 -1
  %rest{k} = and i32 {rest}, %drop{k}
