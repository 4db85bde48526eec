"""Exceptions. All of them can be pickled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["CheckError", "Error", "Fault", "Place", "Unsupported"]


@dataclass(frozen=True)
class Place:
    """The location of an instruction. Lines and columns count from 1."""

    #: The function, with its demangled name.
    function: str
    #: The PTX file.
    file: str
    line: int
    column: int
    #: File, line and column of the CUDA source, if the PTX gives it (`.loc`); column 0 means unknown.
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
    """The base class of margay's exceptions."""

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
    """A module has errors. The text is the report; `diagnostics` contains all diagnostics."""

    @property
    def diagnostics(self) -> Any:
        """A `margay.Diagnostics`, warnings included."""
        from margay._check import Diagnostics

        return Diagnostics._of(self._data)

    def _repr_html_(self) -> str:
        return str(self.diagnostics._repr_html_())


class Unsupported(Error, NotImplementedError):
    """The module requires a feature that margay lacks. The text names the construct and its location."""

    @property
    def place(self) -> Place | None:
        """The location of the feature, if it is a single instruction."""
        return Place._of((self._data or {}).get("place"))


class Fault(Error, RuntimeError):
    """A kernel faulted. The text is the report."""

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
        """The call stack, innermost caller first."""
        return tuple(place for place in map(Place._of, self._data["callers"]) if place)

    @property
    def notes(self) -> tuple[str, ...]:
        """Further facts, such as the nearest allocation, or which threads wait where."""
        return tuple(self._data["notes"])

    @property
    def report(self) -> str:
        """The full report; the same as `str(fault)`."""
        return str(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"
