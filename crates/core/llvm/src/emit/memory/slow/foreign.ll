; Lanes whose addresses are not in their own local windows, with room for an access of %bytes bytes.
define internal i32 @margay.foreign(ptr %ctx, <32 x i64> %at, i64 %bytes) #2 {
  %window.p = getelementptr i8, ptr %ctx, i64 {local}
  %window = load i64, ptr %window.p, align 8
  %stride.p = getelementptr i8, ptr %ctx, i64 {local_stride}
  %stride = load i64, ptr %stride.p, align 8
  %size.p = getelementptr i8, ptr %ctx, i64 {local_size}
  %size = load i64, ptr %size.p, align 8
  ; The first bytes of a window at which an access fits.
  %narrow = icmp ult i64 %size, %stride
  %room = select i1 %narrow, i64 %size, i64 %stride
  %fits = icmp uge i64 %room, %bytes
  %last = sub i64 %room, %bytes
  %count = add i64 %last, 1
  %places = select i1 %fits, i64 %count, i64 0
  ; Windows are less than 4 GiB apart, which makes the products cheap.
  %step = and i64 %stride, 4294967295
  %window.one = insertelement <32 x i64> poison, i64 %window, i32 0
  %window.all = shufflevector <32 x i64> %window.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %step.one = insertelement <32 x i64> poison, i64 %step, i32 0
  %step.all = shufflevector <32 x i64> %step.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %places.one = insertelement <32 x i64> poison, i64 %places, i32 0
  %places.all = shufflevector <32 x i64> %places.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %behind = mul <32 x i64> %step.all, {lanes}
  %starts = add <32 x i64> %window.all, %behind
  %within = sub <32 x i64> %at, %starts
  %foreign = icmp uge <32 x i64> %within, %places.all
  %bits = bitcast <32 x i1> %foreign to i32
  ret i32 %bits
}
