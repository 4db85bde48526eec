; Adds %here, lanes at the block of %site, to the held ones.
define internal void @margay.hold(ptr %held, i32 %here, i32 %gathers, i32 %site) #2 {
  %first.p = getelementptr i8, ptr %held, i64 4
  %site.p = getelementptr i8, ptr %held, i64 8
  %gathered.p = getelementptr i8, ptr %held, i64 12
  %lanes = load i32, ptr %held, align 4
  %first = load i32, ptr %first.p, align 4
  %old = load i32, ptr %site.p, align 4
  %gathered = load i32, ptr %gathered.p, align 4
  %lanes.now = or i32 %lanes, %here
  %gathered.now = or i32 %gathered, %gathers
  ; The bits below the lowest lane; all for no lane.
  %here.less = sub i32 %here, 1
  %here.not = xor i32 %here, -1
  %here.below = and i32 %here.less, %here.not
  %first.less = sub i32 %first, 1
  %first.not = xor i32 %first, -1
  %first.below = and i32 %first.less, %first.not
  %lower = icmp ule i32 %here.below, %first.below
  %first.now = select i1 %lower, i32 %here, i32 %first
  %site.now = select i1 %lower, i32 %site, i32 %old
  store i32 %lanes.now, ptr %held, align 4
  store i32 %first.now, ptr %first.p, align 4
  store i32 %site.now, ptr %site.p, align 4
  store i32 %gathered.now, ptr %gathered.p, align 4
  ret void
}
