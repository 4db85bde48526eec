"""Exceptions. All of them can be pickled, so they travel between processes as they are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["CheckError", "Error", "Fault", "Place", "Unsupported"]


@dataclass(frozen=True)
class Place:
    """An instruction's place. Lines and columns count from 1."""

    #: The function, as its author wrote the name.
    function: str
    #: The PTX file.
    file: str
    line: int
    column: int
    #: File, line and column of the CUDA source, where the PTX names it (`.loc`); a column of 0 is not known.
    source: tuple[str, int, int] | None = None

    @classmethod
    def _of(cls, data: dict[str, Any] | None) -> Place | None:
        if data is None:
            return None
        cuda = data.get("cuda")
        source = (cuda["file"], cuda["line"], cuda["column"]) if cuda else None
        return cls(data["function"], data["file"], data["line"], data["column"], source)

    def __str__(self) -> str:
        if self.source:
            file, line, _ = self.source
            return f"{file}:{line} ({self.file}:{self.line}), in {self.function}"
        return f"{self.file}:{self.line}, in {self.function}"


class Error(Exception):
    """The base of margay's own exceptions."""

    def __init__(self, message: str, data: Any = None) -> None:
        super().__init__(message, data)

    @classmethod
    def _of(cls, message: str, data: str) -> Error:
        return cls(message, json.loads(data))

    @property
    def _data(self) -> Any:
        return self.args[1]

    def __str__(self) -> str:
        return str(self.args[0])


class CheckError(Error, ValueError):
    """A module is not right. Its text is the report; `diagnostics` has everything that was found."""

    @property
    def diagnostics(self) -> Any:
        """A `margay.Diagnostics`, warnings included."""
        from margay._check import Diagnostics

        return Diagnostics._of(self._data)

    def _repr_html_(self) -> str:
        return str(self.diagnostics._repr_html_())


class Unsupported(Error, NotImplementedError):
    """The module asks for what margay does not do. Its text names the construct and its place."""

    @property
    def place(self) -> Place | None:
        """Where it is asked for, if that is one instruction."""
        return Place._of((self._data or {}).get("place"))


class Fault(Error, RuntimeError):
    """A kernel did what no kernel may. Its text is the report."""

    @property
    def kind(self) -> str:
        """One word: `out-of-bounds`, `misaligned`, `read-only`, `bad-free`, `trap`, `breakpoint`, `assert`, `stack`, `bad-target`,
        `deadlock`, `barrier`, `descriptor`, `bad-handle`, `hazard` or `undefined`."""
        return str(self._data["kind"])

    @property
    def title(self) -> str:
        """What happened, in one line."""
        return str(self._data["title"])

    @property
    def thread(self) -> tuple[int, int, int]:
        """The thread's index in its block."""
        x, y, z = self._data["thread"]
        return x, y, z

    @property
    def block(self) -> tuple[int, int, int]:
        """The block's index in the grid."""
        x, y, z = self._data["cta"]
        return x, y, z

    @property
    def place(self) -> Place | None:
        """The instruction."""
        return Place._of(self._data["place"])

    @property
    def callers(self) -> tuple[Place, ...]:
        """The calls that led there, innermost first."""
        return tuple(place for place in map(Place._of, self._data["callers"]) if place)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts: the nearest allocation, who waits where."""
        return tuple(self._data["notes"])

    @property
    def report(self) -> str:
        """What people are shown; the same as `str(fault)`."""
        return str(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"
