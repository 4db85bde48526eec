  %{name} = select <32 x i1> %on, {all} {found}, {all} zeroinitializer
  ret {all} %{name}
