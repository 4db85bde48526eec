; Arrives at the barrier object at %object, after adding %bytes to its transaction count. Returns the object before, or 0 if nothing was
; done: for faults, and if only some of the arrivals belong to the current phase.
define internal i64 @margay.arrive(ptr %object, i64 %arrivals, i64 %bytes) #1 {
  %old = load i64, ptr %object, align 8, {program}
  %mark = and i64 %old, {valid}
  %valid = icmp ne i64 %mark, 0
  %pending = and i64 %old, {limit}
  %few = icmp ule i64 %arrivals, %pending
  %none = icmp eq i64 %arrivals, 0
  %some = xor i1 %none, true
  %count.top = shl i64 %old, 3
  %count = ashr i64 %count.top, 43
  %count.new = add i64 %count, %bytes
  %count.up = add i64 %count.new, {limit}
  %count.fits = icmp ule i64 %count.up, {twice}
  %one = and i1 %valid, %few
  %two = and i1 %some, %count.fits
  %good = and i1 %one, %two
  br i1 %good, label %arrive, label %leave
arrive:
  %less = sub i64 %old, %arrivals
  %rest = and i64 %less, {other}
  %shifted = shl i64 %count.new, {tx_at}
  %tx = and i64 %shifted, {tx_mask}
  %waiting = or i64 %rest, %tx
  %open = and i64 %waiting, {open}
  %complete = icmp eq i64 %open, 0
  %expected.low = lshr i64 %waiting, {expected_at}
  %expected = and i64 %expected.low, {limit}
  %flipped = xor i64 %waiting, {phase}
  %next = or i64 %flipped, %expected
  %new = select i1 %complete, i64 %next, i64 %waiting
  store i64 %new, ptr %object, align 8, {program}
  br label %leave
leave:
  %result = select i1 %good, i64 %old, i64 0
  ret i64 %result
}
