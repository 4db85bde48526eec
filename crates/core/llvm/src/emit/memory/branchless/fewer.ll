; Goes to `{few}` if the mask has few lanes, else to `{many}`, which the caller begins.
  %lanes.{many} = call i32 @llvm.ctpop.i32(i32 %mask)
  %fewer.{many} = icmp ult i32 %lanes.{many}, {limit}
  br i1 %fewer.{many}, label %{few}, label %{many}
