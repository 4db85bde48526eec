{pointer}
  %in.p{lane} = getelementptr {t}, ptr %in, i32 {lane}
  %v{lane} = load volatile {t}, ptr %in.p{lane}, align {bytes}
  store {t} %v{lane}, ptr %p{lane}, align {align}
