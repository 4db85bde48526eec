  %old{n} = load {t}, ptr %p{n}, align {align}
{new}
  store {t} %new{n}, ptr %p{n}, align {align}
