; The first two lanes are as far apart as in a row, or at one address.
  %at.a = extractelement <32 x i64> %at, i32 0
  %at.b = extractelement <32 x i64> %at, i32 1
  %apart.ab = sub i64 %at.b, %at.a
  %row.ab = icmp eq i64 %apart.ab, {bytes}
  %same.ab = icmp eq i64 %apart.ab, 0
  %perhaps = or i1 %row.ab, %same.ab
  br i1 %perhaps, label %perhaps.together, label %mixed
perhaps.together:
