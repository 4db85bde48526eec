"""What needs no device: checking, canonical form, calling conventions, the pages of codes."""

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
    """A place with a few words about it. Lines and columns count from 1, columns in characters; the end is behind the last one."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True)
class Edit:
    """A replacement of what stands between two places."""

    line: int
    column: int
    end_line: int
    end_column: int
    replacement: str


@dataclass(frozen=True)
class Fix:
    """A change of the text that would help."""

    message: str
    edits: tuple[Edit, ...]
    #: Surely right: `margay check --fix` applies it without asking.
    sure: bool

    def apply(self, text: str) -> str:
        """The text with this change, and no other, made."""
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
    """One finding: the cause, said once, at its place. `str()` is what people are shown."""

    #: The published code, such as `E0204`: `margay.explain` has its page.
    code: str
    #: The code's name in words.
    name: str
    #: `error`, `warning` or `note`.
    severity: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    #: Places; the first is the primary one.
    labels: tuple[Label, ...]
    notes: tuple[str, ...]
    #: Advice.
    help: tuple[str, ...]
    fixes: tuple[Fix, ...]
    rendered: str

    @property
    def fix(self) -> Fix | None:
        """The first change that is surely right, or else the first one, if there is any."""
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
    """Diagnostics in order of position: a list that notebooks show as a page."""

    @classmethod
    def _of(cls, data: Any) -> Diagnostics:
        return cls(Diagnostic._of(d) for d in data or [])

    @property
    def errors(self) -> Diagnostics:
        """Those for which ptxas would refuse the module."""
        return Diagnostics(d for d in self if d.severity == "error")

    @property
    def warnings(self) -> Diagnostics:
        """Those that are legal for ptxas, but probably mistakes."""
        return Diagnostics(d for d in self if d.severity == "warning")

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) if self else "no findings"

    def _repr_html_(self) -> str:
        return "".join(d._repr_html_() for d in self) if self else "<p>no findings</p>"


def _read(text: Any, name: str | None) -> tuple[str, str]:
    """The text, and its name for messages."""
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
    """The text in canonical form. Raises `ValueError` where it is no PTX."""
    return _margay.fmt(_read(text, None)[0])


@dataclass(frozen=True)
class Code:
    """A diagnostic's code."""

    code: str
    name: str
    severity: str
    summary: str


class Page(str):
    """A page in Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


def explain(code: str) -> Page:
    """The page of a diagnostic's code, in Markdown: what it means, why, the manual's section, wrong and right."""
    return Page(_margay.explain(code))


def codes() -> list[Code]:
    """All codes."""
    return [Code(**code) for code in json.loads(_margay.codes())]


@dataclass(frozen=True)
class Abi:
    """Where every byte of every parameter of a module travels. `str()` is the table for people."""

    #: The calling convention.
    abi: str
    #: What `margay abi --json` writes.
    data: dict[str, Any]
    text: str
    #: A self-contained page.
    html: str

    @property
    def functions(self) -> list[dict[str, Any]]:
        """One object for each function and kernel."""
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
