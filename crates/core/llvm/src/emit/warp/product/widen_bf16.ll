; The upper half of an .f32.
  %{v}.wide = zext <{lanes} x i16> %{v} to {word}
  %{v}.upper = shl {word} %{v}.wide, splat (i32 16)
  %{v}.single = bitcast {word} %{v}.upper to {single}
  %{v}.double = fpext {single} %{v}.single to {double}
