  %in{i}.one = insertelement {all} poison, {one} %in{i}, i32 0
  %in{i}.all = shufflevector {all} %in{i}.one, {all} poison, <32 x i32> zeroinitializer
  %in{i}.to = getelementptr <32 x i32>, ptr %inputs, i64 {row}
  store {all} %in{i}.all, ptr %in{i}.to, align 64
