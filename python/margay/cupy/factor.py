"""Factorizations of matrices in place, in LAPACK's layouts: what NumPy's own functions do not offer."""

from __future__ import annotations

import numpy

_COLUMNS = 32  # that are factored at a time: the rest of the work is products of matrices


def triangle(uplo: int, matrix: numpy.ndarray) -> numpy.ndarray:
    """The lower (0) or the upper (1) triangle of a matrix."""
    return numpy.tril(matrix) if uplo == 0 else numpy.triu(matrix)


def lu(matrix: numpy.ndarray, pivots: numpy.ndarray | None) -> int:
    """Replaces a matrix by its factors L and U. The result is the place of the first pivot that is zero, counted from 1, or 0.

    Rows are exchanged if there is an array for the pivots, which counts rows from 1.
    """
    info, size = 0, min(matrix.shape)
    for begin in range(0, size, _COLUMNS):
        end = min(begin + _COLUMNS, size)
        for k in range(begin, end):
            if pivots is not None:
                column = matrix[k:, k]
                p = k + int(numpy.argmax(numpy.abs(column.real) + numpy.abs(column.imag)))
                pivots[k] = p + 1
                if p != k:
                    matrix[[k, p]] = matrix[[p, k]]
            if matrix[k, k] == 0:
                info = info or k + 1
                continue
            matrix[k + 1 :, k] /= matrix[k, k]
            matrix[k + 1 :, k + 1 : end] -= numpy.outer(matrix[k + 1 :, k], matrix[k, k + 1 : end])
        for k in range(begin, end - 1):
            matrix[k + 1 : end, end:] -= numpy.outer(matrix[k + 1 : end, k], matrix[k, end:])
        matrix[end:, end:] -= matrix[end:, begin:end] @ matrix[begin:end, end:]
    return info


def order_of(pivots: numpy.ndarray) -> numpy.ndarray:
    """The rows of the original matrix in the order in which its factors have them."""
    order = numpy.arange(len(pivots))
    for k, p in enumerate(pivots):
        order[[k, p - 1]] = order[[p - 1, k]]
    return order


def lu_solve(factors: numpy.ndarray, pivots: numpy.ndarray | None, right: numpy.ndarray, operation: int) -> numpy.ndarray:
    """Solves `op(A) X = B` with the factors of A; 0: as it is, 1: transposed, 2: conjugated too."""
    lower, upper = numpy.tril(factors, -1) + numpy.eye(len(factors), dtype=factors.dtype), numpy.triu(factors)
    order = numpy.arange(len(factors)) if pivots is None else order_of(pivots)
    if operation == 0:
        return numpy.linalg.solve(upper, numpy.linalg.solve(lower, right[order]))
    lower, upper = (m.T if operation == 1 else m.conj().T for m in (lower, upper))
    result = numpy.empty_like(right)
    result[order] = numpy.linalg.solve(lower, numpy.linalg.solve(upper, right))
    return result


def cholesky(uplo: int, matrix: numpy.ndarray) -> int:
    """Replaces a triangle by that of the Cholesky factor. The result is the order of the first minor that is not positive, or 0."""
    lower = matrix if uplo == 0 else matrix.conj().T  # only its lower triangle is read
    for size in range(len(matrix), 0, -1):
        try:
            factor = numpy.linalg.cholesky(lower[:size, :size])
        except numpy.linalg.LinAlgError:
            continue
        break
    else:
        size, factor = 0, lower[:0, :0]
    place = matrix[:size, :size]
    numpy.copyto(place, factor if uplo == 0 else factor.conj().T, where=triangle(uplo, numpy.ones(place.shape, bool)))
    return 0 if size == len(matrix) else size + 1


def reflect(reflectors: numpy.ndarray, tau: numpy.ndarray, right: numpy.ndarray, adjoint: bool = False) -> None:
    """Replaces a matrix by its product with the Q of a QR factorization, or with Q's adjoint.

    The product of a few reflectors is `I - V T V^H` (Schreiber and Van Loan, "A storage-efficient WY representation").
    """
    begins = range(0, len(tau), _COLUMNS)
    for begin in begins if adjoint else reversed(begins):
        end = min(begin + _COLUMNS, len(tau))
        v = numpy.tril(reflectors[begin:, begin:end], -1)
        numpy.fill_diagonal(v, 1)
        t = numpy.zeros((end - begin, end - begin), v.dtype)
        for i in range(end - begin):
            t[i, i] = tau[begin + i]
            t[:i, i] = -t[i, i] * (t[:i, :i] @ (v[:, :i].conj().T @ v[:, i]))
        right[begin:] -= v @ ((t.conj().T if adjoint else t) @ (v.conj().T @ right[begin:]))


def orthogonal(matrix: numpy.ndarray, tau: numpy.ndarray) -> None:
    """Replaces the reflectors of a QR factorization by the first columns of Q."""
    result = numpy.eye(*matrix.shape, dtype=matrix.dtype)
    reflect(matrix, tau, result)
    matrix[...] = result


def cholesky_solve(uplo: int, factor: numpy.ndarray, right: numpy.ndarray) -> numpy.ndarray:
    """Solves `A X = B` with the Cholesky factor of A."""
    lower = numpy.tril(factor) if uplo == 0 else numpy.triu(factor).conj().T
    return numpy.linalg.solve(lower.conj().T, numpy.linalg.solve(lower, right))
