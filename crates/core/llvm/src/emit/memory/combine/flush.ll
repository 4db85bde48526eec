; Performs all sums.
define internal void @margay.combine.flush.{t}(ptr %table) #2 {
entry:
  %keys = getelementptr i8, ptr %table, i64 {keys}
  %sums = getelementptr i8, ptr %table, i64 {sums}
  %high.p = getelementptr i8, ptr %table, i64 {high}
  %high = load i64, ptr %high.p, align 8
  %none = icmp eq i64 %high, 0
  br i1 %none, label %end, label %group
; Eight places at a time are skipped if they are free.
group:
  %first = phi i64 [ 0, %entry ], [ %following, %skip ]
  %group.p = getelementptr i64, ptr %keys, i64 %first
  %group.keys = load <8 x i64>, ptr %group.p, align 64
  %taken = icmp ne <8 x i64> %group.keys, zeroinitializer
  %bits = bitcast <8 x i1> %taken to i8
  %some = icmp ne i8 %bits, 0
  br i1 %some, label %each, label %skip
each:
  %i = phi i64 [ %first, %group ], [ %next, %done ]
  %key.p = getelementptr i64, ptr %keys, i64 %i
  %key = load i64, ptr %key.p, align 8
  %used = icmp ne i64 %key, 0
  br i1 %used, label %perform, label %done
perform:
  %sum.p = getelementptr {t}, ptr %sums, i64 %i
  %sum = load {t}, ptr %sum.p, align {align}
  %p = inttoptr i64 %key to ptr
  %old = atomicrmw add ptr %p, {t} %sum acq_rel, align {align}
  store i64 0, ptr %key.p, align 8
  br label %done
done:
  %next = add i64 %i, 1
  %within = and i64 %next, 7
  %more = icmp ne i64 %within, 0
  br i1 %more, label %each, label %skip
skip:
  %following = add i64 %first, 8
  %again = icmp ult i64 %following, {places}
  br i1 %again, label %group, label %reset
reset:
  store i64 -1, ptr %table, align 8
  store i64 0, ptr %high.p, align 8
  br label %end
end:
  ret void
}
