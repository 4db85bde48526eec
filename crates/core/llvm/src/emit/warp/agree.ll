; Whether the member masks of all present lanes are consistent: every present lane that a mask names has the same mask.
define internal i1 @margay.agree(<32 x i32> %masks, i32 %here) #1 {
  %list = alloca <32 x i32>, align 64
  store <32 x i32> %masks, ptr %list, align 64
  %some = icmp ne i32 %here, 0
  br i1 %some, label %each, label %fine
each:
  %left = phi i32 [ %here, %0 ], [ %rest, %on ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %p = getelementptr i32, ptr %list, i32 %lane
  %mask = load i32, ptr %p, align 4
  %masks.1 = insertelement <32 x i32> poison, i32 %mask, i32 0
  %same.1 = shufflevector <32 x i32> %masks.1, <32 x i32> poison, <32 x i32> zeroinitializer
  %same.2 = icmp eq <32 x i32> %masks, %same.1
  %same.3 = bitcast <32 x i1> %same.2 to i32
  %same = and i32 %same.3, %here
  %inside = and i32 %same, %mask
  %wanted = and i32 %mask, %here
  %agree = icmp eq i32 %inside, %wanted
  br i1 %agree, label %on, label %differ
on:
  %others = xor i32 %same, -1
  %rest = and i32 %left, %others
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %fine
fine:
  ret i1 1
differ:
  ret i1 0
}
declare i32 @llvm.cttz.i32(i32, i1)
