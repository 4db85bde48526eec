  %share.at{lane} = extractelement <32 x i64> %at, i32 {lane}
  %share.p{lane} = inttoptr i64 %share.at{lane} to ptr
