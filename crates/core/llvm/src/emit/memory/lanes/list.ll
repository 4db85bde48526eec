define internal {header} #1 {
entry:
{variables}
{together}
{before}
{lanes}
{after}
}
