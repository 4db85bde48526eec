{find_rows}
one:
{masks}
{stores}
  ret void
apart.lanes:
