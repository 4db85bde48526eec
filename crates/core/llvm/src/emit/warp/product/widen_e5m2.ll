; The upper half of an .f16.
  %{v}.wide = zext <{lanes} x i8> %{v} to <{lanes} x i16>
  %{v}.upper = shl <{lanes} x i16> %{v}.wide, splat (i16 8)
  %{v}.half = bitcast <{lanes} x i16> %{v}.upper to <{lanes} x half>
  %{v}.single = fpext <{lanes} x half> %{v}.half to {single}
  %{v}.double = fpext {single} %{v}.single to {double}
