  ; NaN results are canonical.
  %b{block}.bits = bitcast <8 x double> {sum} to <8 x i64>
  %b{block}.nan = fcmp uno <8 x double> {sum}, zeroinitializer
  %d{block} = select <8 x i1> %b{block}.nan, <8 x i64> splat (i64 9223372036854775807), <8 x i64> %b{block}.bits
