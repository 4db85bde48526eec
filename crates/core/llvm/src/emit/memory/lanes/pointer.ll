  %address.p{n} = getelementptr i64, ptr %addresses, i32 {n}
  %a{n} = load volatile i64, ptr %address.p{n}, align 8
  %p{n} = inttoptr i64 %a{n} to ptr
