  %wide{of} = {extend} i32 %i{of} to i64
  %offset{of} = shl i64 %wide{of}, {shift}
  %address{of} = add i64 %base, %offset{of}
  %p{of} = inttoptr i64 %address{of} to ptr
