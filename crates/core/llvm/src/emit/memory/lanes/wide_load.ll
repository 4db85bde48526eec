; Elements of 128 bits are collected in memory.
  %v = {load}
  %out.p = getelementptr {t}, ptr %out, i32 %lane
  store {t} %v, ptr %out.p, align {align}
