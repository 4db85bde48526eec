  %f{quad}.{part} = shufflevector <16 x i32> %e{first}, <16 x i32> %e{second}, <16 x i32> <{picks}>
  store <16 x i32> %f{quad}.{part}, ptr %f{quad}.{part}.to, align 64
