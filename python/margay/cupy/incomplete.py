"""cuSPARSE's incomplete LU factorization without fill-in, which `cupyx.scipy.sparse.linalg.spilu` uses (cuSPARSE documentation, `csrilu02`)."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy

from margay.cupy.library import Refused, array, put, written
from margay.cupy.sparse import Legacy, begin, forget, keep, of

_TYPES = {"S": numpy.float32, "D": numpy.float64, "C": numpy.complex64, "Z": numpy.complex128}
_ZERO_PIVOT = 9


@dataclass
class _Info:
    """The first row whose pivot is missing or zero, counted from the matrix's base, or -1."""

    position: int = -1


def _rows(n, nnz, descriptor, row_offsets, columns):
    base = of(descriptor, Legacy).base
    offsets = array(row_offsets, (n + 1,), (1,), numpy.int32) - base
    return base, offsets.tolist(), array(columns, (nnz,), (1,), numpy.int32) - base


def _analyze(handle, n, nnz, descriptor, values, row_offsets, columns, info, policy, work):
    begin(handle)
    base, offsets, columns = _rows(n, nnz, descriptor, row_offsets, columns)
    missing = (i for i in range(n) if i not in columns[offsets[i] : offsets[i + 1]])
    of(info, _Info).position = next((i + base for i in missing), -1)


def _factor(t):
    def compute(handle, n, nnz, descriptor, values, row_offsets, columns, info, policy, work):
        begin(handle)
        base, offsets, columns = _rows(n, nnz, descriptor, row_offsets, columns)
        values = array(values, (nnz,), (1,), t)
        diagonal, found = numpy.full(n, -1), -1
        place = numpy.full(n, -1)  # of a column in the row
        for i in range(n):
            row = slice(offsets[i], offsets[i + 1])
            place[columns[row]] = range(offsets[i], offsets[i + 1])
            for k in numpy.sort(columns[row][columns[row] < i]).tolist():
                if diagonal[k] < 0:
                    continue
                factor = values[place[k]] = values[place[k]] / values[diagonal[k]]
                other = numpy.arange(offsets[k], offsets[k + 1])
                other = other[(columns[other] > k) & (place[columns[other]] >= 0)]
                values[place[columns[other]]] -= factor * values[other]
            if place[i] >= 0 and values[place[i]] != 0:
                diagonal[i] = place[i]
            elif found < 0:
                found = i + base
            place[columns[row]] = -1
        written(values)
        of(info, _Info).position = found

    return compute


def _zero_pivot(handle, info, place):
    position = of(info, _Info).position
    put(place, ctypes.c_int, position)
    if position >= 0:
        raise Refused(_ZERO_PIVOT)


def functions() -> dict:
    """The functions by name, without the library's prefix: the kinds of their parameters, and what computes them."""
    found = {
        "CreateCsrilu02Info": ("p", lambda place: keep(place, _Info())),
        "DestroyCsrilu02Info": ("p", forget),
        "Xcsrilu02_zeroPivot": ("ppp", _zero_pivot),
    }
    for letter, t in _TYPES.items():
        found[f"{letter}csrilu02_bufferSize"] = "piipppppp", lambda *arguments: put(arguments[8], ctypes.c_int, 1)
        found[f"{letter}csrilu02_analysis"] = "piipppppip", _analyze
        found[f"{letter}csrilu02"] = "piipppppip", _factor(t)
    return found
