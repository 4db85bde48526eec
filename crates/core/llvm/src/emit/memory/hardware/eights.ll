  store volatile <32 x {t}> {content}, ptr %list, align 64
  br label %parts
parts:
  %part = phi i32 [ 0, %apart.lanes ], [ %next, %over ]
  %left = phi i32 [ %mask, %apart.lanes ], [ %rest, %over ]
  %low.bits = trunc i32 %left to i8
  %idle = icmp eq i8 %low.bits, 0
  br i1 %idle, label %over, label %some
some:
  %on = bitcast i8 %low.bits to <8 x i1>
  %address.p = getelementptr <8 x i64>, ptr %addresses, i32 %part
  %a = load <8 x i64>, ptr %address.p, align 64
{access}
  br label %over
over:
  %next = add i32 %part, 1
  %rest = lshr i32 %left, 8
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %parts, label %end
end:
{end}
