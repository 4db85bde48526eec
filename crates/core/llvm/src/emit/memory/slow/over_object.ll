  ; The object begins %index granules before the one of the offset.
  %length.{x} = and {ty} %entry.{x}, {length}
  %high.{x} = lshr {ty} %entry.{x}, {shift}
  %index.{x} = and {ty} %high.{x}, {index}
  %first.{x} = sub {ty} %granule.{x}, %index.{x}
  %start.{x} = shl {ty} %first.{x}, {granule}
  %within.{x} = sub {ty} {offset}, %start.{x}
  %end.{x} = add {ty} %within.{x}, {bytes}
  %over.{x} = icmp ugt {ty} %end.{x}, %length.{x}
