  ; The first two lanes of the mask, or arbitrary ones, and their addresses.
  %lane.a = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %in.a = and i32 %lane.a, 31
  %less.a = sub i32 %mask, 1
  %rest.a = and i32 %mask, %less.a
  %lane.b = call i32 @llvm.cttz.i32(i32 %rest.a, i1 false)
  %in.b = and i32 %lane.b, 31
  %p.a = getelementptr i64, ptr %addresses, i32 %in.a
  %p.b = getelementptr i64, ptr %addresses, i32 %in.b
  %at.a = load i64, ptr %p.a, align 8
  %at.b = load i64, ptr %p.b, align 8
  ; They are as far apart as the lanes of a row, or the same, or of different halves, which tells nothing.
  %apart.ab = sub i64 %at.b, %at.a
  %lanes.ab = sub i32 %in.b, %in.a
  %bytes.ab = mul i32 %lanes.ab, {bytes}
  %wide.ab = zext i32 %bytes.ab to i64
  %row.ab = icmp eq i64 %apart.ab, %wide.ab
  %same.ab = icmp eq i64 %apart.ab, 0
  %either.ab = or i1 %row.ab, %same.ab
  %halves.ab = xor i32 %in.a, %in.b
  %far.ab = icmp uge i32 %halves.ab, {half}
  %any.ab = or i1 %either.ab, %far.ab
  %perhaps = freeze i1 %any.ab
  br i1 %perhaps, label %perhaps.together, label %apart.lanes
perhaps.together:
