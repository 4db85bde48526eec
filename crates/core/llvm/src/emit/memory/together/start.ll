  %start.at{lane} = extractelement <32 x i64> %at, i32 {lane}
  %start{lane} = inttoptr i64 %start.at{lane} to ptr
