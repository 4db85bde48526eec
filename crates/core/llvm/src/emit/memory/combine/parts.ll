  %keys = getelementptr i8, ptr %table, i64 {keys}
  %sums = getelementptr i8, ptr %table, i64 {sums}
