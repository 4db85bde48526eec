  %address.p{lane} = getelementptr i64, ptr %addresses, i32 {lane}
  %address{lane} = load volatile i64, ptr %address.p{lane}, align 8
  %p{lane} = inttoptr i64 %address{lane} to ptr
