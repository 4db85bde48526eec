  %address.p{i} = getelementptr i64, ptr %addresses, i32 {i}
  %address{i} = load i64, ptr %address.p{i}, align 8
  %row.p{i} = inttoptr i64 %address{i} to ptr
  %p{i} = getelementptr i8, ptr %row.p{i}, i64 %byte
