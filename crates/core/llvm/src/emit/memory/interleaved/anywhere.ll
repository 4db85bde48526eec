; The bytes at offsets in the windows: those of the frame in its rows, others at the addresses %windows.
define internal <32 x i64> @margay.local(i64 %rows, <32 x i32> %at, <32 x i64> %windows) #1 {
  %within = sub <32 x i32> %at, splat (i32 {start})
  %in = icmp ult <32 x i32> %within, splat (i32 {size})
  ; A unit of each lane, one after the other, makes a row.
  %whole = and <32 x i32> %within, splat (i32 {whole})
  %rest = and <32 x i32> %within, splat (i32 {rest})
  %row = shl <32 x i32> %whole, splat (i32 5)
  %first = add <32 x i32> %row, %rest
  %place = add <32 x i32> %first, {lanes}
  %wide = zext <32 x i32> %place to <32 x i64>
  %rows.one = insertelement <32 x i64> poison, i64 %rows, i32 0
  %rows.all = shufflevector <32 x i64> %rows.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %own = add <32 x i64> %rows.all, %wide
  %found = select <32 x i1> %in, <32 x i64> %own, <32 x i64> %windows
  ret <32 x i64> %found
}
