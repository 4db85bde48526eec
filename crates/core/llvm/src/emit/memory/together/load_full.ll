; Shorter rows, or what they share, if all lanes are active.
  %every = icmp eq i32 %mask, -1
  br i1 %every, label %full, label %apart.lanes
full:
{rows}
  %other = icmp ne <32 x i64> %at, %firsts
  %other.bits = bitcast <32 x i1> %other to i32
  %alone = icmp ne i32 %other.bits, 0
  br i1 %alone, label %apart.lanes, label %share
share:
{starts}
{shared}
{joined}
