  %{x} = load double, ptr %{x}.at, align 8
  %{x}.one = insertelement <8 x double> poison, double %{x}, i32 0
  %{x}.all = shufflevector <8 x double> %{x}.one, <8 x double> poison, <8 x i32> zeroinitializer
  %sum{r}.{next} = call <8 x double> @llvm.fmuladd.v8f64(<8 x double> %{x}.all, <8 x double> %y{k}, <8 x double> %sum{r}.{k})
