  %in.p{n} = getelementptr {t}, ptr %in, i32 {lane}
  %v{n} = load volatile {t}, ptr %in.p{n}, align {align}
