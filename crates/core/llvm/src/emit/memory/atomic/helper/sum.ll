; A single-precision addition to a location that other threads may change concurrently.
define internal float @{name}(ptr %p, float %v) #1 {
entry:
  %bits = bitcast float %v to i32
{flush_operand}
  %first = load atomic i32, ptr %p monotonic, align 4
  br label %again
again:
  %seen = phi i32 [ %first, %entry ], [ %found, %again ]
{flush_seen}
  %x = bitcast i32 %{a} to float
  %y = bitcast i32 %{b} to float
  %sum = fadd float %x, %y
  ; The NaN is canonicalized.
  %raw = bitcast float %sum to i32
  %size = and i32 %raw, 2147483647
  %nan = icmp ugt i32 %size, 2139095040
  %kept = select i1 %nan, i32 {nan}, i32 %raw
{flush_sum}
  %pair = cmpxchg ptr %p, i32 %seen, i32 %{new} acq_rel acquire
  %found = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %end, label %again
end:
  %old = bitcast i32 %seen to float
  ret float %old
}
