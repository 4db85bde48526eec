  %line.p{i} = getelementptr i64, ptr %list, i64 {line}
  call void @margay.matrix.store(ptr %line.p{i}, i64 {byte}, <32 x i32> %mixed{mixture})
