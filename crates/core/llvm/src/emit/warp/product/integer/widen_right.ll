  %{row}.to = getelementptr i8, ptr %wide, i64 {to}
  %{row} = shufflevector <{bytes} x i8> %{b}, <{bytes} x i8> poison, <16 x i32> <{picks}>
  %{row}.wide = {extend} <16 x i8> %{row} to <16 x i16>
  store <16 x i16> %{row}.wide, ptr %{row}.to, align 32
