  %bits{k} = trunc i32 %half{k} to i16
  %half.on{k} = bitcast i16 %bits{k} to <{half} x i1>
