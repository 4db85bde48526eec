  %here{n}.{at} = getelementptr i8, ptr %p{n}, i64 {at}
  %row{n}.{at} = getelementptr [{bytes} x i8], ptr %buffer, i32 {lane}
  %there{n}.{at} = getelementptr i8, ptr %row{n}.{at}, i64 {at}
  %v{n}.{at} = {load}
  {store}
