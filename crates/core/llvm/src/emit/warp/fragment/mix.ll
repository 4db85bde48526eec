  %a{i} = bitcast <32 x i32> %{from}{a} to {elements}
  %b{i} = bitcast <32 x i32> %{from}{b} to {elements}
  %m{i} = shufflevector {elements} %a{i}, {elements} %b{i}, <{count} x i32> <{picks}>
  %mixed{i} = bitcast {elements} %m{i} to <32 x i32>
