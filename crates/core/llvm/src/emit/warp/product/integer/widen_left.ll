  %{a}.from = getelementptr i8, ptr %in, i64 {from}
  %{a}.to = getelementptr i8, ptr %wide, i64 {to}
  %{a} = load <{wide} x i8>, ptr %{a}.from, align 16
  %{a}.wide = {extend} <{wide} x i8> %{a} to <{wide} x i16>
  store <{wide} x i16> %{a}.wide, ptr %{a}.to, align 32
