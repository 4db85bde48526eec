  ; Two lanes tell whether to compare the others. Elements with other things between them are no row that could be loaded at once.
  %same.ab = icmp eq i32 %index.b, %index.a
  br i1 %same.ab, label %alike, label %apart
