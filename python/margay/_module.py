"""Modules, kernels and launches."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, Iterable, Iterator, Sequence

from margay import _margay
from margay._arrays import Memory, is_scalar, memory_of
from margay._check import Verdict, _read
from margay._device import Device, device as default_device
from margay._errors import Place

__all__ = ["Finding", "Kernel", "Launch", "Module", "Param", "Party", "UndefinedWarning", "lend"]

Dim = "int | Sequence[int]"


@dataclass(frozen=True)
class Param:
    """A kernel parameter."""

    name: str
    #: The PTX type without its dot, such as `u64` or `f32`; for an array, its element type.
    type: str
    #: Whether the parameter is an array; usually a by-value struct.
    array: bool
    #: Bytes.
    size: int
    align: int

    def __str__(self) -> str:
        return f"{self.name}: {self.size} bytes" if self.array else f"{self.name}: {self.type}"


@dataclass(frozen=True)
class Party:
    """A thread that a finding names."""

    #: `reads`, `writes`, `updates atomically`, `waits`.
    verb: str
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    place: Place
    callers: tuple[Place, ...]


@dataclass(frozen=True)
class Finding:
    """An error that does not stop the kernel. `str()` returns the text that the command line prints."""

    #: `race`, `uninitialized`, `synchronization` or `out of bounds`.
    kind: str
    title: str
    threads: tuple[Party, ...]
    notes: tuple[str, ...]
    help: str | None
    #: How often it occurred in the launch.
    times: int
    report: str

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Finding:
        def places(all: list[Any]) -> tuple[Place, ...]:
            return tuple(place for place in map(Place._of, all) if place)

        parties = tuple(
            Party(p["verb"], tuple(p["thread"]), tuple(p["cta"]), places([p["place"]])[0], places(p["callers"]))
            for p in data["threads"]
        )
        return cls(
            data["kind"], data["title"], parties, tuple(data["notes"]), data["help"], data["times"], data["report"]
        )

    def __str__(self) -> str:
        return self.report

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.report)}</pre>"


class UndefinedWarning(UserWarning):
    """A kernel used something that the manual leaves undefined, and continued as on a GPU."""


@dataclass(frozen=True)
class Launch:
    """The cost of a launch and the findings of its checks."""

    #: Seconds spent waiting for compilation.
    compile: float
    #: Seconds from the start of the first block to the end of the last one.
    time: float
    #: The findings of `checks`.
    findings: tuple[Finding, ...]


class Module:
    """PTX that was checked and can be run.

    `text` is PTX, the path of a PTX file, or a list of these to link. Raises `CheckError` if the check finds errors.

    `engine`: `"tiered"` (the default) starts at once and compiles in the background, `"reference"` compiles nothing, `"simd"` and
    `"simd-full"` wait for compiled code. `abi` is the calling convention, `device` the device to run on.
    """

    def __init__(
        self,
        text: Any,
        *,
        device: Device | None = None,
        engine: str | None = None,
        abi: str | None = None,
        target: str | None = None,
        version: str | None = None,
        strict: bool = False,
        verdict: Verdict | None = None,
        name: str | None = None,
    ) -> None:
        texts = list(text) if isinstance(text, (list, tuple)) else [text]
        if not texts:
            raise ValueError("a module requires a text")
        read = [_read(text, name) for text in texts]
        if len(read) > 1:
            read = [(text, f"{i}:{name}" if name == "module.ptx" else name) for i, (text, name) in enumerate(read)]
        self._texts = [(name, text) for text, name in read]
        self._options = (verdict or ("strict" if strict else "ptxas"), target, version, abi, engine)
        self.device = device or default_device()
        self._made: tuple[int, _margay.Module] | None = None
        self._native  # raises the errors of the text

    @property
    def _native(self) -> _margay.Module:
        if self._made is None or self._made[0] != os.getpid():
            self._made = (os.getpid(), _margay.Module(self.device._native, self._texts, *self._options))
        return self._made[1]

    @property
    def kernels(self) -> list[str]:
        """The names of all kernels, in text order."""
        return self._native.kernels()

    def kernel(self, name: str | None = None) -> Kernel:
        """Returns the kernel of this name, or without a name the only kernel of the module."""
        if name is None:
            names = self.kernels
            if len(names) != 1:
                raise LookupError(f"the module has {len(names)} kernels: {', '.join(names) or 'none'}; give its name")
            name = names[0]
        return Kernel(self, name)

    def __getitem__(self, name: str) -> Kernel:
        return self.kernel(name)

    def read(self, variable: str) -> bytes:
        """Returns the bytes of a `.global` or `.const` variable."""
        return bytes(self._native.read(variable))

    def write(self, variable: str, data: Any) -> None:
        """Writes data to the start of a variable."""
        self._native.write(variable, memoryview(data).tobytes())

    def __repr__(self) -> str:
        return f"<margay.Module {self._texts[0][0]!r}: {', '.join(self.kernels) or 'no kernel'}>"

    def __reduce__(self) -> Any:
        return _module, (self._texts, self._options, self.device)


def _module(texts: Any, options: Any, device: Device) -> Module:
    made = Module.__new__(Module)
    made._texts, made._options, made.device, made._made = texts, options, device, None
    return made


class Kernel:
    """A kernel of a module. `kernel[grid, block](arguments…)` runs it and waits for it to finish.

    `grid` and `block` are integers or tuples of up to three. Arguments are given in the order of the parameters:

    * a number, converted to the parameter's type; a number that does not fit raises an `OverflowError` that names the parameter;
    * for a pointer: a NumPy array, or any object with the buffer protocol, `__cuda_array_interface__` or `__dlpack__`. The kernel uses
      its memory in place, and an out-of-bounds access raises `Fault`. `None` is a null pointer;
    * for a by-value struct: its bytes, or any object with a buffer of that size (`ctypes.Structure`, a NumPy record).
    """

    def __init__(self, module: Module, name: str) -> None:
        self.module = module
        self.name = name
        self._made: tuple[int, _margay.Kernel] | None = None
        self.params: tuple[Param, ...] = tuple(Param(*p) for p in self._native.params())

    @property
    def _native(self) -> _margay.Kernel:
        if self._made is None or self._made[0] != os.getpid():
            self._made = (os.getpid(), self.module._native.kernel(self.name))
        return self._made[1]

    @property
    def facts(self) -> dict[str, Any]:
        """The engine, the size of static shared memory in bytes, why there is no compiled code (`fallback`), and the mnemonics that
        compiled code leaves to the reference engine (`single_steps`)."""
        facts: dict[str, Any] = json.loads(self._native.facts())
        return facts

    def __getitem__(self, shape: Any) -> _Shaped:
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise TypeError(f"write {self.name}[grid, block](...), each a number or a tuple of up to three")
        return _Shaped(self, _dim("grid", shape[0]), _dim("block", shape[1]))

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Iterable[Any] = (),
        *,
        shared: int = 0,
        cluster: int | Sequence[int] | None = None,
        seed: int = 0,
        cooperative: bool = False,
        threads: int | None = None,
        checks: str | Iterable[str] = (),
    ) -> Launch:
        """Equivalent to `kernel[grid, block](*args)`.

        `shared` is the size of dynamic shared memory in bytes, `cluster` the size of a cluster in blocks, `seed` selects a reproducible
        interleaving of threads and blocks (0: the natural order on all host threads), `cooperative` lets blocks wait for each other,
        `threads` limits the number of host threads.

        `checks` reports errors that do not stop the kernel: `memory` (accesses outside
        their variable), `races`, `init` (uses of uninitialized values), `sync` (barriers that some threads skip), or `all`.
        `Launch.findings` contains the results.

        Raises `Fault` if the kernel faults, `Unsupported` if margay lacks a required feature, and `KeyboardInterrupt` if
        Ctrl-C interrupts the launch.
        """
        grid, block = _dim("grid", grid), _dim("block", block)
        whole = None if cluster is None else _dim("cluster", cluster)
        words = checks if isinstance(checks, str) else ",".join(checks)
        blocks, memories = self._arguments(tuple(args))
        ranges = [(m.address, m.size, m.readonly, name) for m, name in memories if m.size]
        ranges += [(m.address, m.size, m.readonly, "lent") for m in self.module.device._lent if m.size]
        compile, time, found, undefined = self._native.launch(
            grid,
            block,
            blocks,
            ranges,
            (memories, tuple(self.module.device._lent)),
            whole,
            _number("shared", shared),
            seed,
            cooperative,
            threads,
            words or None,
            # Python delivers signals to its main thread alone.
            threading.current_thread() is threading.main_thread(),
        )
        if undefined is not None:
            warnings.warn(undefined, UndefinedWarning, stacklevel=3)
        findings = tuple(Finding._of(f) for f in json.loads(found)) if found != "[]" else ()
        return Launch(compile, time, findings)

    def _arguments(self, args: tuple[Any, ...]) -> tuple[list[bytes], list[tuple[Memory, str]]]:
        if len(args) != len(self.params):
            n = len(self.params)
            raise TypeError(f"{self} takes {n} argument{'' if n == 1 else 's'}, found {len(args)}")
        blocks: list[bytes] = []
        memories: list[tuple[Memory, str]] = []
        for i, (param, value) in enumerate(zip(self.params, args)):
            try:
                block, memory = _pack(param, value)
            except (TypeError, ValueError, OverflowError) as error:
                raise type(error)(f"argument {i} of `{self.name}` (`{param}`): {error}") from None
            blocks.append(block)
            if memory is not None:
                memories.append((memory, f"{param.name}"))
        return blocks, memories

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})"

    def __repr__(self) -> str:
        return f"<margay.Kernel {self}>"

    def __reduce__(self) -> Any:
        return Kernel, (self.module, self.name)


@dataclass(frozen=True)
class _Shaped:
    """A kernel with the shape of its launch."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def __call__(self, *args: Any, **options: Any) -> Launch:
        return self.kernel.launch(self.grid, self.block, args, **options)


def _number(what: str, value: Any) -> int:
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{what}: {value} is not an unsigned 32-bit integer")
    return int(value)


def _dim(what: str, value: Any) -> tuple[int, int, int]:
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"{what}: expected one to three extents, found {len(numbers)}")
    x, y, z = (*(_number(what, n.__index__()) for n in numbers), *(1,) * (3 - len(numbers)))
    return x, y, z


_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
# The floating-point types that a number without a decimal point's type, `.b32` say, takes by its bits.
_BITS_AS_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def _pack(param: Param, value: Any) -> tuple[bytes, Memory | None]:
    """An argument's bytes, and the memory that it points to."""
    if param.array:
        return _bytes(param, value), None
    kind, bits = param.type.rstrip("0123456789"), param.size * 8
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if not is_scalar(value) and value is not None:
        try:
            memory = memory_of(value)
        except TypeError as error:
            if hasattr(value, "__array_interface__") or not hasattr(value, "__index__"):
                if kind == "f" or param.size != 8:
                    raise TypeError(f"a {type(value).__name__} is not a number") from None
                raise error
            return _pack(param, value.__index__())
        if kind not in "bus" or param.size != 8:
            raise TypeError(f"an array's address has 8 bytes, but the parameter has {param.size}")
        return memory.address.to_bytes(param.size, "little"), memory
    if value is None:
        if kind not in "bus" or param.size != 8:
            raise TypeError("`None` is a null pointer, but the parameter is not a pointer")
        return bytes(param.size), None
    if kind == "f":
        return _float(param, float(value)), None
    if kind == "b" and not hasattr(value, "__index__"):
        return struct.pack(_BITS_AS_FLOATS[param.size], float(value)), None
    if not hasattr(value, "__index__"):
        raise TypeError(f"a {type(value).__name__} is not an integer")
    if kind not in "bus":
        raise TypeError(f"margay's Python package does not support arguments of type `.{param.type}`")
    return _integer(param, kind, bits, value), None


def _integer(param: Param, kind: str, bits: int, value: Any) -> bytes:
    number: int = value.__index__()
    low = 0 if kind == "u" else -(1 << bits - 1)
    high = (1 << bits - 1) - 1 if kind == "s" else (1 << bits) - 1
    if not low <= number <= high:
        raise OverflowError(f"{number} is outside the range {low} to {high}")
    return (number & (1 << bits) - 1).to_bytes(param.size, "little")


def _float(param: Param, number: float) -> bytes:
    return struct.pack(_FLOATS[param.type], number)


def _bytes(param: Param, value: Any) -> bytes:
    try:
        data = memoryview(value).tobytes()
    except TypeError:
        raise TypeError(f"the parameter is {param.size} bytes by value, but a {type(value).__name__} has no buffer") from None
    if len(data) != param.size:
        raise ValueError(f"found {len(data)} bytes for a parameter of {param.size} bytes")
    return data


@contextmanager
def lend(value: Any, device: Device | None = None) -> Iterator[int]:
    """Lends an array to all launches on a device for the duration of the block, and yields its address, for pointers inside structs."""
    memory = memory_of(value)
    lent = (device or default_device())._lent
    lent.append(memory)
    try:
        yield memory.address
    finally:
        # By identity: equal ones may be lent at the same time.
        del lent[next(i for i, m in enumerate(lent) if m is memory)]


def _print(data: bytes) -> None:
    """Writes the output of kernels."""
    sys.stdout.write(data.decode("utf-8", "replace"))
    sys.stdout.flush()
