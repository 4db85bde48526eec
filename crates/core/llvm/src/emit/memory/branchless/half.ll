; The lanes from here on are the upper half of the warp.
  %low.half = icmp ult i32 %mask, {lanes}
  br i1 %low.half, label %half.done, label %high.half
half.done:
{end}
high.half:
