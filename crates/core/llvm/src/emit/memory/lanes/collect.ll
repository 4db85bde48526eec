; Puts an element into a vector, at the place `%lane`.
  %place = {place}
  %place.one = insertelement {numbers} poison, {number} %place, i32 0
  %place.all = shufflevector {numbers} %place.one, {numbers} poison, <32 x i32> zeroinitializer
  %is.place = icmp eq {numbers} %place.all, {places}
  %v.one = insertelement {all} poison, {t} %v, i32 0
  %v.all = shufflevector {all} %v.one, {all} poison, <32 x i32> zeroinitializer
  %collected.next = select <32 x i1> %is.place, {all} %v.all, {all} %collected
