  %share.v{lane} = load {t}, ptr %share.p{lane}, align {align}
  %share.one{lane} = insertelement <{row} x {t}> poison, {t} %share.v{lane}, i32 0
  %share.row{lane} = shufflevector <{row} x {t}> %share.one{lane}, <{row} x {t}> poison, <{row} x i32> zeroinitializer
