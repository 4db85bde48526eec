"""CUDA extensions that are compiled on load, with nvcc from PyPI.

`torch.utils.cpp_extension` looks for one toolkit with everything in it. PyPI's packages put the compiler, its headers and those of the
libraries beside each other below `nvidia`, in as many folders as there are places for packages.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def _packages():
    """The folders below `nvidia` that packages of one CUDA release share, such as `nvidia/cu13`, and those of older single packages."""
    for place in sys.path:
        root = Path(place) / "nvidia"
        if place and root.is_dir():
            yield from sorted(p for p in root.iterdir() if (p / "include").is_dir())


def _append(variable: str, folders) -> None:
    old = [p for p in os.environ.get(variable, "").split(os.pathsep) if p]
    os.environ[variable] = os.pathsep.join(dict.fromkeys([*old, *map(str, folders)]))


def install() -> None:
    """Sets the paths of CUDA's headers and runtime for compilers that this process starts, and the path of nvcc for torch."""
    if "TRITON_PTXAS_PATH" in os.environ:
        # Triton has a second assembler for newer architectures, under a name of its own.
        os.environ.setdefault("TRITON_PTXAS_BLACKWELL_PATH", os.environ["TRITON_PTXAS_PATH"])
    packages = list(_packages())
    if packages:
        for variable in ("C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"):  # looked at behind the folders that a command names
            _append(variable, [p / "include" for p in packages])
    runtime = [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p and (Path(p) / "libcudart.so").exists()]
    if runtime:
        _append("LIBRARY_PATH", runtime)
    if not {"CUDA_HOME", "CUDA_PATH"} & set(os.environ) and shutil.which("nvcc") is None:
        toolkit = next((p for p in packages if (p / "bin/nvcc").is_file()), None)
        if toolkit is not None:
            os.environ["CUDA_HOME"] = str(toolkit)
