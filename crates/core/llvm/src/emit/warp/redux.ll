; For each lane of %here, the reduction of the values of those whose member mask it shares: one for each mask.
define internal <32 x i32> @margay.redux.{name}(<32 x i32> %values, <32 x i32> %masks, i32 %here) #1 {
entry:
  %list = alloca <32 x i32>, align 64
  store <32 x i32> %masks, ptr %list, align 64
  %some = icmp ne i32 %here, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ %here, %entry ], [ %rest, %each ]
  %done = phi <32 x i32> [ zeroinitializer, %entry ], [ %found, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %p = getelementptr i32, ptr %list, i32 %lane
  %mask = load i32, ptr %p, align 4
  %group = and i32 %mask, %here
  %members = bitcast i32 %group to <32 x i1>
  %part = select <32 x i1> %members, <32 x i32> %values, <32 x i32> splat (i32 {neutral})
  %reduced = call i32 @llvm.vector.reduce.{name}.v32i32(<32 x i32> %part)
  %reduced.1 = insertelement <32 x i32> poison, i32 %reduced, i32 0
  %reduced.all = shufflevector <32 x i32> %reduced.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %found = select <32 x i1> %members, <32 x i32> %reduced.all, <32 x i32> %done
  %own = shl i32 1, %lane
  %gone = or i32 %group, %own
  %others = xor i32 %gone, -1
  %rest = and i32 %left, %others
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
  %result = phi <32 x i32> [ zeroinitializer, %entry ], [ %found, %each ]
  ret <32 x i32> %result
}
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.vector.reduce.{name}.v32i32(<32 x i32>)
