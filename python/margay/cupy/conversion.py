"""cuSPARSE: functions on plain arrays (cuSPARSE documentation, "cuSPARSE Reordering", "Format Conversion", "Extra Function Reference").

Their indices have 32 bits, and count from zero or one as a `cusparseMatDescr_t` or a parameter says.
"""

from __future__ import annotations

import ctypes

import numpy

from margay.cupy.library import put
from margay.cupy.sparse import Legacy, begin, expanded, of, offsets, scalar, store, summed, type_of, vector

_I = numpy.int32
_VALUES = 1  # `cusparseAction_t`: numbers too, not only their places


def _coo_to_csr(handle, rows, nnz, m, starts, base):
    begin(handle)
    store(vector(starts, m + 1, _I), offsets(vector(rows, nnz, _I) - base, m) + base)


def _csr_to_coo(handle, starts, nnz, m, rows, base):
    begin(handle)
    store(vector(rows, nnz, _I), expanded(vector(starts, m + 1, _I)) + base)


def _transpose(handle, m, n, nnz, data, starts, cols, out, out_starts, out_rows, kind, action, base, algorithm, buffer):
    begin(handle)
    columns = vector(cols, nnz, _I) - base
    order = numpy.argsort(columns, kind="stable")
    store(vector(out_starts, n + 1, _I), offsets(columns, n) + base)
    store(vector(out_rows, nnz, _I), expanded(vector(starts, m + 1, _I))[order] + base)
    if action == _VALUES:
        dtype = type_of(kind)
        store(vector(out, nnz, dtype), vector(data, nnz, dtype)[order])


def _sort_coo(by_row):
    def compute(handle, m, n, nnz, rows, cols, permutation, buffer):
        begin(handle)
        rows, cols = vector(rows, nnz, _I), vector(cols, nnz, _I)
        order = numpy.lexsort((cols, rows) if by_row else (rows, cols))
        _reorder(order, rows, cols, *_permutation(permutation, nnz))

    return compute


def _sort_lines(of_rows):
    def compute(handle, m, n, nnz, descriptor, starts, minor, permutation, buffer):
        begin(handle)
        minor = vector(minor, nnz, _I)
        order = numpy.lexsort((minor, expanded(vector(starts, (m if of_rows else n) + 1, _I))))
        _reorder(order, minor, *_permutation(permutation, nnz))

    return compute


def _permutation(address, nnz):
    return [vector(address, nnz, _I)] if address else []


def _reorder(order, *arrays):
    for values in arrays:
        store(values, values[order])


def _identity(handle, count, place):
    begin(handle)
    store(vector(place, count, _I), numpy.arange(count))


def _union(n, a, b):
    """Keys of the elements of `A` or `B`, and of each: a matrix is its descriptor, number of elements, offsets and columns."""
    keys = []
    for descriptor, nnz, rows, cols in (a, b):
        base = of(descriptor, Legacy).base
        keys.append(expanded(rows) * n + (vector(cols, nnz, _I).astype(numpy.int64) - base))
    return keys


def _add_count(handle, m, n, da, nnz_a, rows_a, cols_a, db, nnz_b, rows_b, cols_b, dc, rows, total, workspace):
    begin(handle)
    a, b = (da, nnz_a, vector(rows_a, m + 1, _I), cols_a), (db, nnz_b, vector(rows_b, m + 1, _I), cols_b)
    keys = numpy.unique(numpy.concatenate(_union(n, a, b)))
    store(vector(rows, m + 1, _I), offsets(keys // max(1, n), m) + of(dc, Legacy).base)
    put(total, ctypes.c_int, len(keys))


def _add(t):
    def compute(handle, m, n, alpha, da, nnz_a, a, rows_a, cols_a, beta, db, nnz_b, b, rows_b, cols_b, dc, c, rows, cols, buffer):
        begin(handle)
        matrices = (da, nnz_a, vector(rows_a, m + 1, _I), cols_a), (db, nnz_b, vector(rows_b, m + 1, _I), cols_b)
        values = scalar(alpha, t) * vector(a, nnz_a, t), scalar(beta, t) * vector(b, nnz_b, t)
        keys, sums = summed(numpy.concatenate(_union(n, *matrices)), numpy.concatenate(values))
        base = of(dc, Legacy).base
        store(vector(rows, m + 1, _I), offsets(keys // max(1, n), m) + base)
        store(vector(cols, len(keys), _I), keys % max(1, n) + base)
        store(vector(c, len(keys), t), sums)

    return compute


def _tolerance(t, words):
    """A number that is passed by value. A `cuComplex` travels like a double."""
    if t is numpy.complex64:
        return numpy.array(words, numpy.float64).view(t)[0]
    return complex(*words) if t is numpy.complex128 else words[0]


def _kept(values, tolerance):
    return abs(values) > abs(tolerance)


def _compress_count(t):
    def compute(handle, m, descriptor, data, starts, in_row, total, *tolerance):
        begin(handle)
        starts = vector(starts, m + 1, _I)
        keep = _kept(vector(data, int(starts[-1] - starts[0]), t), _tolerance(t, tolerance))
        count = numpy.bincount(expanded(starts)[keep], minlength=m)
        store(vector(in_row, m, _I), count)
        put(total, ctypes.c_int, int(count.sum()))

    return compute


def _compress(t):
    def compute(handle, m, n, descriptor, data, cols, starts, nnz, in_row, out, out_cols, out_starts, *tolerance):
        begin(handle)
        values, columns, base = vector(data, nnz, t), vector(cols, nnz, _I), of(descriptor, Legacy).base
        keep = _kept(values, _tolerance(t, tolerance))
        rows, count = expanded(vector(starts, m + 1, _I))[keep], int(keep.sum())
        store(vector(out_starts, m + 1, _I), offsets(rows, m) + base)
        store(vector(out_cols, count, _I), columns[keep])
        store(vector(out, count, t), values[keep])

    return compute


def _room(at: int):
    return lambda *arguments: put(arguments[at], ctypes.c_size_t, 1)


def functions() -> dict:
    """The functions by name without the library's prefix: the kinds of their parameters, and what computes them."""
    found = {
        "Xcoo2csr": ("ppiipi", _coo_to_csr),
        "Xcsr2coo": ("ppiipi", _csr_to_coo),
        "Csr2cscEx2_bufferSize": ("piiippppppiiiip", _room(14)),
        "Csr2cscEx2": ("piiippppppiiiip", _transpose),
        "Xcoosort_bufferSizeExt": ("piiippp", _room(6)),
        "XcoosortByRow": ("piiipppp", _sort_coo(True)),
        "XcoosortByColumn": ("piiipppp", _sort_coo(False)),
        "Xcsrsort_bufferSizeExt": ("piiippp", _room(6)),
        "Xcsrsort": ("piiippppp", _sort_lines(True)),
        "Xcscsort_bufferSizeExt": ("piiippp", _room(6)),
        "Xcscsort": ("piiippppp", _sort_lines(False)),
        "CreateIdentityPermutation": ("pip", _identity),
        "Xcsrgeam2Nnz": ("piipipppipppppp", _add_count),
    }
    types = {"S": (numpy.float32, "f"), "D": (numpy.float64, "d"), "C": (numpy.complex64, "d"), "Z": (numpy.complex128, "dd")}
    for letter, (t, by_value) in types.items():
        found |= {
            f"{letter}csrgeam2_bufferSizeExt": ("piippipppppipppppppp", _room(19)),
            f"{letter}csrgeam2": ("piippipppppipppppppp", _add(t)),
            f"{letter}nnz_compress": ("pippppp" + by_value, _compress_count(t)),
            f"{letter}csr2csr_compress": ("piippppipppp" + by_value, _compress(t)),
        }
    return found
