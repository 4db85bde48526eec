  ; Two neighbors along k.
  %x{k}.from = getelementptr i8, ptr %a, i64 {x_at}
  %y{k}.from = getelementptr i8, ptr %right, i64 {y_at}
  %x{k} = load i32, ptr %x{k}.from, align 4
  %x{k}.one = insertelement <8 x i32> poison, i32 %x{k}, i32 0
  %x{k}.all = shufflevector <8 x i32> %x{k}.one, <8 x i32> poison, <8 x i32> zeroinitializer
  %x{k}.pairs = bitcast <8 x i32> %x{k}.all to <16 x i16>
  %y{k} = load <16 x i16>, ptr %y{k}.from, align 32
  %product{k} = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %x{k}.pairs, <16 x i16> %y{k})
  %sum{k} = add <8 x i32> {before}, %product{k}
