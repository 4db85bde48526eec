  %i.row{lane} = extractelement <32 x i32> %index, i32 {lane}
{pointer}
  %loaded{lane} = load <{row} x {t}>, ptr %p.row{lane}, align {align}
