  %seen = load atomic {i}, ptr %p acquire, align {align}
  %same = icmp eq {i} %seen, %v
  br i1 %same, label %try, label %next
try:
  %pair = cmpxchg ptr %p, {i} %v, {i} %n acq_rel acquire
  %found = extractvalue { {i}, i1 } %pair, 0
  br label %next
next:
  %old = phi {i} [ %seen, %each ], [ %found, %try ]
