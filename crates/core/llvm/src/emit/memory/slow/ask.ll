; Asks a helper of the host about all lanes of one access.
define internal i32 {name}(ptr %ctx, i32 %site, i32 %mask, <32 x i64> %at) #2 {
  %buffer = alloca <32 x i64>, align 64
{ask_host}
  ret i32 %status
}
