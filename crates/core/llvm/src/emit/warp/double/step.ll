  %{s}.a = load double, ptr %{s}.from, align 8
  %{s}.one = insertelement <8 x double> poison, double %{s}.a, i32 0
  %{s}.all = shufflevector <8 x double> %{s}.one, <8 x double> poison, <8 x i32> zeroinitializer
  %{s} = call <8 x double> @llvm.fma.v8f64(<8 x double> %{s}.all, <8 x double> %right{k}, <8 x double> {sum})
