  ; Loads the words that contain the bytes, and shifts the bytes to their low ends.
  %word.at{lane} = and <8 x i64> %a{lane}, splat (i64 -4)
  %word{lane} = call {eight} {name}({eight} zeroinitializer, ptr null, <8 x i64> %word.at{lane}, <8 x i1> {on}, i32 1)
  %low{lane} = trunc <8 x i64> %a{lane} to {eight}
  %byte{lane} = and {eight} %low{lane}, splat (i32 3)
  %bit{lane} = shl {eight} %byte{lane}, splat (i32 3)
  %shifted{lane} = lshr {eight} %word{lane}, %bit{lane}
  %got{lane} = trunc {eight} %shifted{lane} to <8 x i8>
