{gather}
  %got.p = getelementptr {eight}, ptr %list, i32 %part
  store {eight} %got, ptr %got.p, align 8
