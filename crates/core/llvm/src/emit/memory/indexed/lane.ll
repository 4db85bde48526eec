  %index.p{lane} = getelementptr i32, ptr %list, i32 {lane}
  %i{lane} = load volatile i32, ptr %index.p{lane}, align 4
{pointer}
  %v{lane} = load {t}, ptr %p{lane}, align {align}
  %row{lane} = insertelement {all} {before}, {t} %v{lane}, i32 {lane}
