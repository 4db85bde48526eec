"""Functions that need no device: checking, formatting, calling conventions, explanations of codes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from margay import _margay

__all__ = ["Abi", "Code", "Diagnostic", "Diagnostics", "Edit", "Fix", "Label", "abi", "check", "codes", "explain", "fmt"]

Verdict = Literal["ptxas", "text", "strict"]
Text = "str | bytes | os.PathLike[str]"


@dataclass(frozen=True)
class Label:
    """A location with a short text. Lines and columns count from 1, columns in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Edit:
    """Replaces the text between two locations."""

    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str


@dataclass(frozen=True)
class Fix:
    """A suggested change to the text."""

    message: str
    edits: tuple[Edit, ...]
    #: Whether the fix is safe: `margay check --fix` applies it.
    sure: bool

    def apply(self, text: str) -> str:
        """Returns the text with this change applied."""
        starts = [0]
        for line in text.split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for edit in reversed(self.edits):
            start = starts[edit.line - 1] + edit.column - 1
            end = starts[edit.end_line - 1] + edit.end_column - 1
            text = text[:start] + edit.replacement + text[end:]
        return text


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic of the checker. `str()` returns the text that the command line prints."""

    #: The code, such as `E0204`; `margay.explain` returns its page.
    code: str
    #: The name of the code.
    name: str
    #: `error`, `warning` or `note`.
    severity: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    #: Locations; the first is the primary one.
    labels: tuple[Label, ...]
    notes: tuple[str, ...]
    #: Advice.
    help: tuple[str, ...]
    fixes: tuple[Fix, ...]
    rendered: str

    @property
    def fix(self) -> Fix | None:
        """The first safe fix, otherwise the first fix, otherwise `None`."""
        return next((fix for fix in self.fixes if fix.sure), next(iter(self.fixes), None))

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Diagnostic:
        def edit(e: dict[str, Any]) -> Edit:
            return Edit(e["line"], e["column"], e["end_line"], e["end_column"], e["replacement"])

        labels = tuple(
            Label(at["line"], at["column"], at["end_line"], at["end_column"], at["text"]) for at in data["labels"]
        )
        suggestions = data["suggestions"]
        return cls(
            code=data["code"],
            name=data["name"],
            severity=data["severity"],
            message=data["message"],
            file=data["file"],
            line=data["line"],
            column=data["column"],
            end_line=data["end_line"],
            end_column=data["end_column"],
            labels=labels,
            notes=tuple(data["notes"]),
            help=tuple(s["message"] for s in suggestions if not s["edits"]),
            fixes=tuple(
                Fix(s["message"], tuple(map(edit, s["edits"])), s["machine_applicable"]) for s in suggestions if s["edits"]
            ),
            rendered=data["rendered"].rstrip(),
        )

    def __str__(self) -> str:
        return self.rendered

    def _repr_html_(self) -> str:
        color = {"error": "#c0392b", "warning": "#b9770e"}.get(self.severity, "#2471a3")
        lines = self.rendered.split("\n")
        first = f'<span style="color:{color};font-weight:bold">{escape(lines[0])}</span>'
        return f'<pre style="line-height:1.25">{chr(10).join([first, *map(escape, lines[1:])])}</pre>'


class Diagnostics(list[Diagnostic]):
    """A list of diagnostics in order of position, which notebooks render as HTML."""

    @classmethod
    def _of(cls, data: Any) -> Diagnostics:
        return cls(Diagnostic._of(d) for d in data or [])

    @property
    def errors(self) -> Diagnostics:
        """The errors, for which ptxas would reject the module."""
        return Diagnostics(d for d in self if d.severity == "error")

    @property
    def warnings(self) -> Diagnostics:
        """The warnings, which ptxas accepts but which are probably mistakes."""
        return Diagnostics(d for d in self if d.severity == "warning")

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) if self else "no findings"

    def _repr_html_(self) -> str:
        return "".join(d._repr_html_() for d in self) if self else "<p>no findings</p>"


def _read(text: Any, name: str | None) -> tuple[str, str]:
    """Returns the text, and its name for messages."""
    if isinstance(text, os.PathLike):
        path = os.fspath(text)
        with open(path, "rb") as file:
            return _read(file.read(), name or str(path))
    if isinstance(text, (bytes, bytearray, memoryview)):
        # Images handed to a driver end in a zero byte.
        text = bytes(text).rstrip(b"\0").decode("utf-8", "replace")
    if not isinstance(text, str):
        raise TypeError(f"PTX is str, bytes or a path, not {type(text).__name__}")
    return text, name or "module.ptx"


def check(
    text: str | bytes | os.PathLike[str],
    *,
    target: str | None = None,
    version: str | None = None,
    strict: bool = False,
    verdict: Verdict | None = None,
    relocatable: bool = False,
    name: str | None = None,
) -> Diagnostics:
    """Checks PTX: what ptxas would accept or refuse, said better. An empty list means that all is well.

    `target` (such as `"sm_90"`) and `version` (such as `"8.3"`) check as if the module said so. `strict` also refuses what only the
    manual refuses; `verdict="text"` goes by the manual alone. `relocatable` allows undefined externals, as `ptxas -c` does.
    """
    text, name = _read(text, name)
    found = _margay.check(text, name, verdict or ("strict" if strict else "ptxas"), target, version, relocatable)
    return Diagnostics._of(json.loads(found))


def fmt(text: str | bytes | os.PathLike[str]) -> str:
    """Returns the text in canonical form. Raises `ValueError` if it is not PTX."""
    return _margay.fmt(_read(text, None)[0])


@dataclass(frozen=True)
class Code:
    """A diagnostic code."""

    code: str
    name: str
    severity: str
    summary: str


class Page(str):
    """A Markdown page."""

    def _repr_markdown_(self) -> str:
        return str(self)


def explain(code: str) -> Page:
    """Returns the Markdown page of a diagnostic code: its meaning, the reason, the manual section, a wrong and a right example."""
    return Page(_margay.explain(code))


def codes() -> list[Code]:
    """Returns all codes."""
    return [Code(**code) for code in json.loads(_margay.codes())]


@dataclass(frozen=True)
class Abi:
    """The locations of all parameters of a module. `str()` returns a text table."""

    #: The calling convention.
    abi: str
    #: The output of `margay abi --json`.
    data: dict[str, Any]
    text: str
    #: A self-contained HTML page.
    html: str

    @property
    def functions(self) -> list[dict[str, Any]]:
        """One object per function and kernel."""
        functions: list[dict[str, Any]] = self.data["functions"]
        return functions

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        page = escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:32em;border:0"></iframe>'


def abi(text: str | bytes | os.PathLike[str], abi: str = "ptx", *, name: str | None = None) -> Abi:
    """Where the parameters of a module's functions and kernels travel under a calling convention: `ptx` (PTX's own view), `sm` (what
    ptxas does), `sysv`, `simd` or `legacy`. Raises `CheckError` where the module is not right."""
    text, name = _read(text, name)
    data, table, page = _margay.abi(text, name, abi)
    return Abi(abi, json.loads(data), table, page)
