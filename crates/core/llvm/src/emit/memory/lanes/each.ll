; Runs over the lanes of the mask, the lowest one first. The block `{from}` precedes it.
  %some = icmp ne i32 %mask, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ %mask, %{from} ], [ %rest, %{last} ]
{collected}
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
{pointer}
{code}
{collect}
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
{result}
