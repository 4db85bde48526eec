"""Factorizations of matrices in place, in LAPACK's layouts: what NumPy's own functions do not offer."""

from __future__ import annotations

import numpy


def triangle(uplo: int, matrix: numpy.ndarray) -> numpy.ndarray:
    """The lower (0) or the upper (1) triangle of a matrix."""
    return numpy.tril(matrix) if uplo == 0 else numpy.triu(matrix)


def lu(matrix: numpy.ndarray, pivots: numpy.ndarray | None) -> int:
    """Replaces a matrix by its factors L and U. The result is the place of the first pivot that is zero, counted from 1, or 0.

    Rows are exchanged if there is an array for the pivots, which counts rows from 1.
    """
    info = 0
    for k in range(min(matrix.shape)):
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
        matrix[k + 1 :, k + 1 :] -= numpy.outer(matrix[k + 1 :, k], matrix[k, k + 1 :])
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


def orthogonal(matrix: numpy.ndarray, tau: numpy.ndarray) -> None:
    """Replaces the reflectors of a QR factorization by the first columns of Q."""
    m, n = matrix.shape
    result = numpy.eye(m, n, dtype=matrix.dtype)
    for i in reversed(range(len(tau))):
        reflector = numpy.concatenate([numpy.ones(1, matrix.dtype), matrix[i + 1 :, i]])
        result[i:] -= tau[i] * numpy.outer(reflector, reflector.conj() @ result[i:])
    matrix[...] = result
