  %{v}.half = bitcast <{lanes} x i16> %{v} to <{lanes} x half>
  %{v}.single = fpext <{lanes} x half> %{v}.half to {single}
  %{v}.double = fpext {single} %{v}.single to {double}
