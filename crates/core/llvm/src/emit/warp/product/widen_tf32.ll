; The low bits of the register are ignored.
  %{v}.upper = and {word} %{v}, splat (i32 -8192)
  %{v}.single = bitcast {word} %{v}.upper to {single}
  %{v}.double = fpext {single} %{v}.single to {double}
