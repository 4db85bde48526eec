; %row[%index] in every lane, for code that must compile quickly.
define internal <32 x i32> @margay.look.up(<32 x i32> %row, <32 x i32> %index) #1 {
entry:
  %from = alloca <32 x i32>, align 64
  store volatile <32 x i32> %row, ptr %from, align 64
  %to = alloca <32 x i32>, align 64
  store volatile <32 x i32> %index, ptr %to, align 64
  br label %each
each:
  %lane = phi i32 [ 0, %entry ], [ %next, %each ]
  %place.p = getelementptr i32, ptr %to, i32 %lane
  %index.n = load i32, ptr %place.p, align 4
  %low = and i32 %index.n, 31
  %element.p = getelementptr i32, ptr %from, i32 %low
  %element = load i32, ptr %element.p, align 4
  store i32 %element, ptr %place.p, align 4
  %next = add i32 %lane, 1
  %more = icmp ult i32 %next, 32
  br i1 %more, label %each, label %end
end:
  %found = load <32 x i32>, ptr %to, align 64
  ret <32 x i32> %found
}
