  ; Two lanes tell whether to compare the others: their indices are as far apart as the lanes, or the same.
  %between = sub i32 %index.b, %index.a
  %lanes = sub i32 %lane.b, %lane.a
  %row.ab = icmp eq i32 %between, %lanes
  %same.ab = icmp eq i32 %between, 0
  %either.ab = or i1 %row.ab, %same.ab
  br i1 %either.ab, label %perhaps, label %apart
perhaps:
