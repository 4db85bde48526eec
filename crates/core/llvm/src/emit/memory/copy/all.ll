; Copies in all lanes, in order, so that the last one wins where several write to one place.
define internal void @margay.copy.all.{size}(<32 x i64> %to, <32 x i64> %from) #1 {
entry:
{lanes}
  ret void
}
