; Adds to the sum for the address %a{n}.
  %hash{n} = lshr i64 %a{n}, {shift}
  %i{n} = and i64 %hash{n}, {last}
  %key.p{n} = getelementptr i64, ptr %keys, i64 %i{n}
  %key{n} = load i64, ptr %key.p{n}, align 8
  %new{n} = icmp ne i64 %key{n}, %a{n}
  br i1 %new{n}, label %insert{n}, label %add{n}, !prof !0
insert{n}:
  call void @margay.combine.insert.{t}(ptr %table, i64 %i{n}, i64 %a{n})
  br label %add{n}
add{n}:
  %sum.p{n} = getelementptr {t}, ptr %sums, i64 %i{n}
  %sum{n} = load {t}, ptr %sum.p{n}, align {align}
  %sum.new{n} = add {t} %sum{n}, {v}
  store {t} %sum.new{n}, ptr %sum.p{n}, align {align}
