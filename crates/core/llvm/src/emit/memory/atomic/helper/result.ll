  %out.p = getelementptr {t}, ptr %out, i32 %lane
  store {t} %old, ptr %out.p, align {align}
