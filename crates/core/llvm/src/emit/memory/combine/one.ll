; Adds to the sum for one address.
define internal void @margay.combine.one.{t}(ptr %table, i64 %a, {t} %v) #1 {
entry:
{parts}
{step}
  ret void
}
