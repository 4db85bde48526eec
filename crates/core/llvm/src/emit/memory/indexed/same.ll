  %i.same = add i32 %index.a, 0
{pointer}
  %v.same = load {t}, ptr %p.same, align {align}
  %one.0 = insertelement {all} poison, {t} %v.same, i32 0
  %one.all = shufflevector {all} %one.0, {all} poison, <32 x i32> zeroinitializer
{chosen}
