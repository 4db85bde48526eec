"""cuSOLVER's linear systems with sparse matrices, which `cupyx.scipy.sparse.linalg.spsolve` and splines use (cuSOLVER documentation,
"cuSolverSP", `csrlsvqr` and `csrlsvchol`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy

from margay.cupy.library import array, put, written
from margay.cupy.sparse import Legacy, of

_TYPES = {"S": numpy.float32, "D": numpy.float64, "C": numpy.complex64, "Z": numpy.complex128}
_DENSE = 1000  # rows of a system that is solved as a dense one


def _dense(rows, columns, values, n):
    matrix = numpy.zeros((n, n), values.dtype)
    numpy.add.at(matrix, (rows, columns), values)
    return matrix


def _with_qr(matrix, right, tolerance):
    """The solution, and the first row of R whose diagonal element is zero under the tolerance, or -1."""
    q, r = numpy.linalg.qr(matrix)
    small = numpy.flatnonzero(numpy.abs(r.diagonal()) <= tolerance)
    try:
        found = numpy.linalg.solve(r, q.conj().T @ right)
    except numpy.linalg.LinAlgError:
        found = numpy.full_like(right, numpy.nan)
    return found, small[0] if small.size else -1


def _solve(rows, columns, values, right, tolerance):
    n = right.size
    if n > _DENSE:
        try:
            from scipy.sparse import csc_matrix
            from scipy.sparse.linalg import spsolve
        except ImportError:
            pass
        else:
            found = spsolve(csc_matrix((values, (rows, columns)), (n, n)), right)
            return found, -1 if numpy.isfinite(found).all() else 0
    return _with_qr(_dense(rows, columns, values, n), right, tolerance)


def _system(t, begin):
    def compute(handle, n, nnz, descriptor, values, row_offsets, columns, right, tolerance, reorder, x, singularity):
        begin(handle)
        base = of(descriptor, Legacy).base
        offsets = array(row_offsets, (n + 1,), (1,), numpy.int32).astype(numpy.int64) - base
        rows = numpy.repeat(numpy.arange(n), numpy.diff(offsets))
        elements = array(values, (nnz,), (1,), t), array(columns, (nnz,), (1,), numpy.int32) - base
        found, singular = _solve(rows, elements[1], elements[0], array(right, (n,), (1,), t), tolerance)
        place = array(x, (n,), (1,), t)
        place[...] = found
        written(place)
        put(singularity, ctypes.c_int, singular)

    return compute


def functions(begin: Callable[[int], None]) -> dict:
    """The functions by name, without the library's prefix: the kinds of their parameters, and what computes them."""
    found = {}
    for letter, t in _TYPES.items():
        kinds = "piipppppfipp" if letter in "SC" else "piipppppdipp"
        for name in ("csrlsvqr", "csrlsvchol"):
            found[letter + name] = (kinds, _system(t, begin))
    return found
