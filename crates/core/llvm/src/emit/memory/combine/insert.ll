; Gives place %i to the new address %a.
define internal void @margay.combine.insert.{t}(ptr %table, i64 %i, i64 %a) #2 {
entry:
  %keys = getelementptr i8, ptr %table, i64 {keys}
  %sums = getelementptr i8, ptr %table, i64 {sums}
  %key.p = getelementptr i64, ptr %keys, i64 %i
  %sum.p = getelementptr {t}, ptr %sums, i64 %i
  %key = load i64, ptr %key.p, align 8
  %used = icmp ne i64 %key, 0
  br i1 %used, label %perform, label %free
; The sum of the address that has the place.
perform:
  %sum = load {t}, ptr %sum.p, align {align}
  %p = inttoptr i64 %key to ptr
  %old = atomicrmw add ptr %p, {t} %sum acq_rel, align {align}
  br label %free
free:
  store i64 %a, ptr %key.p, align 8
  store {t} 0, ptr %sum.p, align {align}
  ; The range of pending addresses.
  %low = load i64, ptr %table, align 8
  %low.new = call i64 @llvm.umin.i64(i64 %low, i64 %a)
  store i64 %low.new, ptr %table, align 8
  %end = add i64 %a, {align}
  %high.p = getelementptr i8, ptr %table, i64 {high}
  %high = load i64, ptr %high.p, align 8
  %high.new = call i64 @llvm.umax.i64(i64 %high, i64 %end)
  store i64 %high.new, ptr %high.p, align 8
  %balance.p = getelementptr i8, ptr %table, i64 {balance}
  %balance = load i64, ptr %balance.p, align 8
  %less = sub i64 %balance, 1
  store i64 %less, ptr %balance.p, align 8
  ret void
}
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
