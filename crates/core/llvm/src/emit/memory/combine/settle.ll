; Performs all sums at the request of another access.
define internal void @margay.combine.settle.{t}(ptr %table) #2 {
  %balance.p = getelementptr i8, ptr %table, i64 {balance}
  %balance = load i64, ptr %balance.p, align 8
  %less = sub i64 %balance, {settled}
  store i64 %less, ptr %balance.p, align 8
  call void @margay.combine.flush.{t}(ptr %table)
  ret void
}
