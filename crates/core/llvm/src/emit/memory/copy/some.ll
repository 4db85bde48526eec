; Copies, or writes zeros, in the lanes of a mask.
define internal void @margay.copy.{size}(<32 x i64> %to, <32 x i64> %from, i32 %mask, i32 %reads) #1 {
entry:
  %both = and i32 %mask, %reads
  %whole = icmp eq i32 %both, -1
  br i1 %whole, label %all, label %parts
all:
  call void @margay.copy.all.{size}(<32 x i64> %to, <32 x i64> %from)
  ret void
; Lanes that do not read have zeros as their source.
parts:
  %nothing = alloca {ty}, align {size}
  store {ty} zeroinitializer, ptr %nothing, align {size}
  %tos = alloca <32 x i64>, align 64
  store volatile <32 x i64> %to, ptr %tos, align 64
  %froms = alloca <32 x i64>, align 64
  store volatile <32 x i64> %from, ptr %froms, align 64
  %some = icmp ne i32 %mask, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ %mask, %parts ], [ %rest, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %to.p = getelementptr i64, ptr %tos, i32 %lane
  %to.a = load i64, ptr %to.p, align 8
  %target = inttoptr i64 %to.a to ptr
  %from.p = getelementptr i64, ptr %froms, i32 %lane
  %from.a = load i64, ptr %from.p, align 8
  %there = inttoptr i64 %from.a to ptr
  %shifted = lshr i32 %reads, %lane
  %wants = trunc i32 %shifted to i1
  %source = select i1 %wants, ptr %there, ptr %nothing
  %v = load {ty}, ptr %source, align {size}
  store {ty} %v, ptr %target, align {size}
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
  ret void
}
declare i32 @llvm.cttz.i32(i32, i1)
