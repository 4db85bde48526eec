  ; The address of the first active lane of half {k}, and the one that lane {first} has if the half accesses a row.
  %lowest{k} = call i32 @llvm.cttz.i32(i32 %half{k}, i1 false)
  %lane{k} = and i32 %lowest{k}, 15
  %index{k} = or i32 %lane{k}, {first}
  %first.p{k} = getelementptr i64, ptr %addresses, i32 %index{k}
  %first.at{k} = load i64, ptr %first.p{k}, align 8
  %lanes.before{k} = zext i32 %lane{k} to i64
  %bytes.before{k} = mul i64 %lanes.before{k}, {bytes}
  %begin{k} = sub i64 %first.at{k}, %bytes.before{k}
  %base{k} = inttoptr i64 %begin{k} to ptr
