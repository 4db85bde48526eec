{fewer}
few.lanes:
  ; Do they share the address of the first one? Without lanes, the address is that of any.
  %few.lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)
  %few.in = and i32 %few.lane, 31
  %few.p = getelementptr i64, ptr %addresses, i32 %few.in
  %few.a = load i64, ptr %few.p, align 8
  %few.one = insertelement <32 x i64> poison, i64 %few.a, i32 0
  %few.all = shufflevector <32 x i64> %few.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %few.at = freeze <32 x i64> %at
  %few.differ = icmp ne <32 x i64> %few.at, %few.all
  %few.bits = bitcast <32 x i1> %few.differ to i32
  %few.others = and i32 %few.bits, %mask
  %few.none = icmp eq i32 %mask, 0
  %few.apart = icmp ne i32 %few.others, 0
  %few.not = or i1 %few.none, %few.apart
  br i1 %few.not, label %apart.lanes, label %few.share
few.share:
  %few.from = inttoptr i64 %few.a to ptr
  %few.x = load {t}, ptr %few.from, align {align}
  %few.v = insertelement {all} poison, {t} %few.x, i32 0
  %few.row = shufflevector {all} %few.v, {all} poison, <32 x i32> zeroinitializer
  %few.on = bitcast i32 %mask to <32 x i1>
  %few.result = select <32 x i1> %few.on, {all} %few.row, {all} zeroinitializer
  ret {all} %few.result
many:
