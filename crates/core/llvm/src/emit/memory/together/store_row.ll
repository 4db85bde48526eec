  %piece{lane} = shufflevector <32 x {t}> %values, <32 x {t}> poison, <{row} x i32> <{picks}>
  store <{row} x {t}> %piece{lane}, ptr %start{lane}, align {align}
