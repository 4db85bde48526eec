  %to{lane} = extractelement <32 x i64> %to, i32 {lane}
  %target{lane} = inttoptr i64 %to{lane} to ptr
  %from{lane} = extractelement <32 x i64> %from, i32 {lane}
  %source{lane} = inttoptr i64 %from{lane} to ptr
  %v{lane} = load {ty}, ptr %source{lane}, align {size}
  store {ty} %v{lane}, ptr %target{lane}, align {size}
