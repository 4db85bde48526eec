  %in.p = getelementptr {t}, ptr %in, i32 %lane
  %v = load {t}, ptr %in.p, align {align}
  call void @margay.combine.one.{t}(ptr %table, i64 %a, {t} %v)
