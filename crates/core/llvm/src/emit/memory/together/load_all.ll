{perhaps}
{rows}
  %firsts.1 = shufflevector <32 x i64> %at, <32 x i64> poison, <32 x i32> zeroinitializer
  %unlike = icmp ne <32 x i64> %at, %firsts.1
  %unlike.bits = bitcast <32 x i1> %unlike to i32
  %alike = icmp eq i32 %unlike.bits, 0
  br i1 %alike, label %same, label %mixed
same:
  %same.at = extractelement <32 x i64> %at, i32 0
  %same.p = inttoptr i64 %same.at to ptr
  %same.v = load {t}, ptr %same.p, align {align}
  %same.1 = insertelement {all} poison, {t} %same.v, i32 0
  %same.all = shufflevector {all} %same.1, {all} poison, <32 x i32> zeroinitializer
  ret {all} %same.all
mixed:
