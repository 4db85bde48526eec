  %index.p = getelementptr i32, ptr %list, i32 %lane
  %i = load i32, ptr %index.p, align 4
{pointer}
