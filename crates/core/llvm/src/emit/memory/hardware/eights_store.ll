  %v.p = getelementptr {eight}, ptr %list, i32 %part
  %v = load {eight}, ptr %v.p, align 8
{scatter}
