; Moves words between rows and an address per lane, in the lanes of the mask.
define internal void @{name}(ptr %block, <32 x i64> %lanes, i64 %rows, i32 %mask) #1 {
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %end, label %row
row:
  %i = phi i64 [ 0, %0 ], [ %next, %step ]
  %at = phi <32 x i64> [ %lanes, %0 ], [ %further, %step ]
  %row.at = shl i64 %i, 7
  %row.p = getelementptr i8, ptr %block, i64 %row.at
  br label %lane
lane:
  %left = phi i32 [ %mask, %row ], [ %rest, %lane ]
  %number = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %address = extractelement <32 x i64> %at, i32 %number
  %there = inttoptr i64 %address to ptr
  %here = getelementptr i32, ptr %row.p, i32 %number
  %word = load i32, ptr {from}
  store i32 %word, ptr {to}
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %step, label %lane
step:
  %further = add <32 x i64> %at, splat (i64 4)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %rows
  br i1 %more, label %row, label %end
end:
  ret void
}
