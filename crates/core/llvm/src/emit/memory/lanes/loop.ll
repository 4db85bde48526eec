define internal {header} #1 {
entry:
{variables}
{together}
{before}
{each}
{after}
}
declare i32 @llvm.cttz.i32(i32, i1)
