  %{row}.low = shufflevector <8 x {t}> %{row}0, <8 x {t}> %{row}8, <16 x i32> <{sixteen}>
  %{row}.high = shufflevector <8 x {t}> %{row}16, <8 x {t}> %{row}24, <16 x i32> <{sixteen}>
  %{row}.whole = shufflevector <16 x {t}> %{row}.low, <16 x {t}> %{row}.high, <32 x i32> <{order}>
  ret <32 x {t}> %{row}.whole
