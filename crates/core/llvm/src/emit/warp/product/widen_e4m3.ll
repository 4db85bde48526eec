; The fields of an .e4m3 in those of an .f32 have the value times a power of two, subnormals included.
  %{v}.wide = zext <{lanes} x i8> %{v} to {word}
  %{v}.size = and {word} %{v}.wide, splat (i32 127)
  %{v}.fields = shl {word} %{v}.size, splat (i32 20)
  %{v}.small = bitcast {word} %{v}.fields to {single}
  %{v}.product = fmul {single} %{v}.small, splat (float 0x4770000000000000)
  %{v}.number = bitcast {single} %{v}.product to {word}
  %{v}.nan = icmp eq {word} %{v}.size, splat (i32 127)
  %{v}.absolute = select <{lanes} x i1> %{v}.nan, {word} splat (i32 2147483647), {word} %{v}.number
  %{v}.negative = and {word} %{v}.wide, splat (i32 128)
  %{v}.sign = shl {word} %{v}.negative, splat (i32 24)
  %{v}.bits = or {word} %{v}.absolute, %{v}.sign
  %{v}.single = bitcast {word} %{v}.bits to {single}
  %{v}.double = fpext {single} %{v}.single to {double}
