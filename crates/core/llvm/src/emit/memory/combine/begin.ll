; Empties the table.
define internal void @margay.combine.begin(ptr %table) #1 {
  %keys = getelementptr i8, ptr %table, i64 {keys}
  call void @llvm.memset.p0.i64(ptr %keys, i8 0, i64 {size}, i1 false)
  store i64 -1, ptr %table, align 8
  %high = getelementptr i8, ptr %table, i64 {high}
  store i64 0, ptr %high, align 8
  %balance = getelementptr i8, ptr %table, i64 {balance}
  store i64 {rich}, ptr %balance, align 8
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
