; Additions to shared memory do not flush subnormals.
define internal float @{name}(ptr %p, float %v, i64 %low, i64 %size) #1 {
  %a = ptrtoint ptr %p to i64
  %at = sub i64 %a, %low
  %shared = icmp ult i64 %at, %size
  br i1 %shared, label %inside, label %outside
inside:
  %kept = call float @{inside}(ptr %p, float %v)
  ret float %kept
outside:
  %flushed = call float @{outside}(ptr %p, float %v)
  ret float %flushed
}
