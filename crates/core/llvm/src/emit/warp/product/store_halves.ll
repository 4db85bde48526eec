  ; The double sum rounded to odd in single precision: where rounding to the nearest was inexact and has an even result, the neighbor
  ; toward the sum.
  %{d}.back = fpext <8 x float> %{d} to <8 x double>
  %{d}.inexact = fcmp one <8 x double> %{d}.back, %{d}.double
  %{d}.bits = bitcast <8 x float> %{d} to <8 x i32>
  %{d}.last = and <8 x i32> %{d}.bits, splat (i32 1)
  %{d}.even = icmp eq <8 x i32> %{d}.last, zeroinitializer
  %{d}.moves = and <8 x i1> %{d}.inexact, %{d}.even
  %{d}.back.size = call <8 x double> @llvm.fabs.v8f64(<8 x double> %{d}.back)
  %{d}.double.size = call <8 x double> @llvm.fabs.v8f64(<8 x double> %{d}.double)
  %{d}.above = fcmp ogt <8 x double> %{d}.back.size, %{d}.double.size
  %{d}.by = select <8 x i1> %{d}.above, <8 x i32> splat (i32 -1), <8 x i32> splat (i32 1)
  %{d}.moved = add <8 x i32> %{d}.bits, %{d}.by
  %{d}.odd = select <8 x i1> %{d}.moves, <8 x i32> %{d}.moved, <8 x i32> %{d}.bits
  ; To half precision. NaN results are canonical.
  %{d}.single = bitcast <8 x i32> %{d}.odd to <8 x float>
  %{d}.half = fptrunc <8 x float> %{d}.single to <8 x half>
  %{d}.half.bits = bitcast <8 x half> %{d}.half to <8 x i16>
  %{d}.nan = fcmp uno <8 x float> %{d}.single, zeroinitializer
  %{d}.canonical = select <8 x i1> %{d}.nan, <8 x i16> splat (i16 32767), <8 x i16> %{d}.half.bits
  %{d}.row = shufflevector <8 x i16> %{d}.canonical, <8 x i16> poison, <8 x i32> <{natural}>
  store <8 x i16> %{d}.row, ptr %{d}.to, align 16
