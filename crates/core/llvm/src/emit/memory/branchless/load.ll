{pointer}
  %v{lane} = load {t}, ptr %p{lane}, align {align}
  %row{lane} = insertelement {all} {before}, {t} %v{lane}, i32 {lane}
