"""What margay's sanitizer looks for in this process."""

from __future__ import annotations

import os


def wanted(*kinds: str) -> bool:
    """Whether it does one of these checks: `"memory"`, `"races"`, … (`--check`). `undefined` is the former name of `all`."""
    chosen = {word.strip() for word in os.environ.get("MARGAY_CHECK", "").split(",")}
    return not chosen.isdisjoint((*kinds, "all", "undefined"))
