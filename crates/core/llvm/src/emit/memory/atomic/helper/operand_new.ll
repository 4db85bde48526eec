  %new.p{n} = getelementptr {t}, ptr %ins, i32 {lane}
  %n{n} = load volatile {t}, ptr %new.p{n}, align {align}
