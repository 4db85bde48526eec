  %line.p{i} = getelementptr i64, ptr %list, i64 {line}
  %block{i} = call <32 x i32> @margay.matrix.load(ptr %line.p{i}, i64 {byte})
