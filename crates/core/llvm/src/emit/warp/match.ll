; For each lane of %here, the lanes of %here with the same value, which differ in number from group to group: one comparison for each.
define internal <32 x i32> @margay.match.{t}(<32 x {t}> %values, i32 %here) #1 {
entry:
  %list = alloca <32 x {t}>, align 64
  store <32 x {t}> %values, ptr %list, align 64
  %some = icmp ne i32 %here, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ %here, %entry ], [ %rest, %each ]
  %done = phi <32 x i32> [ zeroinitializer, %entry ], [ %found, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %p = getelementptr {t}, ptr %list, i32 %lane
  %value = load {t}, ptr %p, align 4
  %value.1 = insertelement <32 x {t}> poison, {t} %value, i32 0
  %value.all = shufflevector <32 x {t}> %value.1, <32 x {t}> poison, <32 x i32> zeroinitializer
  %same = icmp eq <32 x {t}> %values, %value.all
  %bits = bitcast <32 x i1> %same to i32
  %group = and i32 %bits, %here
  %group.1 = insertelement <32 x i32> poison, i32 %group, i32 0
  %group.all = shufflevector <32 x i32> %group.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %found = select <32 x i1> %same, <32 x i32> %group.all, <32 x i32> %done
  %others = xor i32 %group, -1
  %rest = and i32 %left, %others
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
  %result = phi <32 x i32> [ zeroinitializer, %entry ], [ %found, %each ]
  ret <32 x i32> %result
}
declare i32 @llvm.cttz.i32(i32, i1)
