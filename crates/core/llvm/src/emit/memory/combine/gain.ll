; An operation of a warp was combined.
  %balance.p = getelementptr i8, ptr %table, i64 {balance}
  %balance = load i64, ptr %balance.p, align 8
  %balance.more = add i64 %balance, {gain}
  %balance.new = call i64 @llvm.smin.i64(i64 %balance.more, i64 {rich})
  store i64 %balance.new, ptr %balance.p, align 8
  ret void
