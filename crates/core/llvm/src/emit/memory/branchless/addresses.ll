{fewer}
every.lane:
  ; Inactive lanes access a spare word of the stack.
  store volatile i64 0, ptr %spare, align 8
  %spare.at = ptrtoint ptr %spare to i64
  %spare.one = insertelement <32 x i64> poison, i64 %spare.at, i32 0
  %spare.all = shufflevector <32 x i64> %spare.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %safe.on = bitcast i32 %mask to <32 x i1>
  %safe = select <32 x i1> %safe.on, <32 x i64> %at, <32 x i64> %spare.all
  store volatile <32 x i64> %safe, ptr %addresses, align 64
