  %pair{n} = cmpxchg ptr %p{n}, {i} {v}, {i} %n{n} acq_rel acquire
  %old{n} = extractvalue { {i}, i1 } %pair{n}, 0
