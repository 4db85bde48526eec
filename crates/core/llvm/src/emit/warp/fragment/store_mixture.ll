  %out.p{i} = getelementptr <32 x i32>, ptr %out, i64 {i}
  store <32 x i32> %mixed{i}, ptr %out.p{i}, align 64
