  %r{mixture}.from = getelementptr <32 x i32>, ptr %results, i64 {register}
  %r{mixture} = load <32 x i32>, ptr %r{mixture}.from, align 64
  %r{mixture}.to = getelementptr <32 x i32>, ptr %out, i64 {mixture}
  store <32 x i32> %r{mixture}, ptr %r{mixture}.to, align 64
