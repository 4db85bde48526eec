{find_rows}
; Each half accesses a row. One without lanes loads nothing.
one:
{masks}
  %found0 = call {part} @{name}(ptr {attribute}%base0{argument}, <{half} x i1> %half.on0, {part} zeroinitializer)
  %found1 = call {part} @{name}(ptr {attribute}%base1{argument}, <{half} x i1> %half.on1, {part} zeroinitializer)
  %found = shufflevector {part} %found0, {part} %found1, <32 x i32> <{order}>
  ret {all} %found
; Does each half share an element? One without lanes loads what the other one does.
several:
  %void = icmp eq i32 %half1, 0
  %second.at = select i1 %void, i64 %first.at0, i64 %first.at1
  %shared.0 = insertelement <32 x i64> poison, i64 %first.at, i32 0
  %shared.1 = insertelement <32 x i64> %shared.0, i64 %second.at, i32 {half}
  %shared.all = shufflevector <32 x i64> %shared.1, <32 x i64> poison, <32 x i32> <{firsts}>
  %unlike = icmp ne <32 x i64> %known, %shared.all
  %unlike.bits = bitcast <32 x i1> %unlike to i32
  %unlike.some = and i32 %unlike.bits, %mask
  %alike = icmp eq i32 %unlike.some, 0
  br i1 %alike, label %same, label %mixed
same:
  %same.a = inttoptr i64 %first.at to ptr
  %same.b = inttoptr i64 %second.at to ptr
  %same.x = load {t}, ptr %same.a, align {align}
  %same.y = load {t}, ptr %same.b, align {align}
  %same.0 = insertelement {all} poison, {t} %same.x, i32 0
  %same.1 = insertelement {all} %same.0, {t} %same.y, i32 {half}
  %same.all = shufflevector {all} %same.1, {all} poison, <32 x i32> <{firsts}>
  %same.on = bitcast i32 %mask to <32 x i1>
  %same.some = select <32 x i1> %same.on, {all} %same.all, {all} zeroinitializer
  ret {all} %same.some
mixed:
{rest}
apart.lanes:
