"""The native part of the package, on which the classes and functions of `margay` are built. Structured values are JSON."""

from os import PathLike

__version__: str

def check(
    text: str, name: str, verdict: str, target: str | None, version: str | None, relocatable: bool
) -> str: ...
def fmt(text: str) -> str: ...
def abi(text: str, name: str, abi: str) -> tuple[str, str, str]: ...
def explain(code: str) -> str: ...
def codes() -> str: ...
def programs(command: str | PathLike[str]) -> tuple[str, list[tuple[str, str]]]: ...

class Device:
    def __init__(self, spec: str | None, threads: int | None) -> None: ...
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int | None
    shared_per_block: int
    threads: int
    engines: list[str]

class Module:
    def __init__(
        self,
        device: Device,
        texts: list[tuple[str, str]],
        verdict: str,
        target: str | None,
        version: str | None,
        abi: str | None,
        engine: str | None,
    ) -> None: ...
    def kernels(self) -> list[str]: ...
    def kernel(self, name: str) -> Kernel: ...
    def variable_size(self, name: str) -> int: ...
    def read(self, name: str) -> bytes: ...
    def write(self, name: str, bytes: bytes) -> None: ...

class Kernel:
    def params(self) -> list[tuple[str, str, bool, int, int]]: ...
    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: list[bytes],
        ranges: list[tuple[int, int, bool, str]],
        owner: object,
        cluster: tuple[int, int, int] | None,
        shared: int,
        seed: int,
        cooperative: bool,
        threads: int | None,
        checks: str | None,
        watch: bool,
    ) -> tuple[float, float, str, str | None]: ...
    def facts(self) -> str: ...
