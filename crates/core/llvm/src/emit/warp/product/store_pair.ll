  %e{pair}.single = shufflevector <8 x float> %d{first}, <8 x float> %d{second}, <16 x i32> <{order}>
  ; NaN results are canonical.
  %e{pair}.bits = bitcast <16 x float> %e{pair}.single to <16 x i32>
  %e{pair}.nan = fcmp uno <16 x float> %e{pair}.single, zeroinitializer
  %e{pair} = select <16 x i1> %e{pair}.nan, <16 x i32> splat (i32 2147483647), <16 x i32> %e{pair}.bits
