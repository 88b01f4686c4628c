"""Factorizations of many small matrices, (n, k, k), wherever they are."""

import numpy as np

from manifoldry.device.base import device_of
from manifoldry.util.typing import Array


def eigh(A: Array) -> tuple[Array, Array]:
    """Return eigenvalues, ascending, and eigenvectors of positive semidefinite matrices.

    Parameters
    ----------
    A : array of shape (n, k, k)
        The matrices, in double precision, of numpy or of a device.

    Returns
    -------
    values : array of shape (n, k)
        The eigenvalues.
    vectors : array of shape (n, k, k)
        The eigenvectors, in columns.

    Examples
    --------
    >>> eigh(np.diag([4.0, 1.0])[None])[0]
    array([[1., 4.]])
    """
    device = device_of(A)
    return np.linalg.eigh(A) if device is None else device.eigh(A)


def eigvalsh(A: Array) -> Array:
    """Return the eigenvalues, ascending, of positive semidefinite matrices; see :func:`eigh`."""
    device = device_of(A)
    return np.linalg.eigvalsh(A) if device is None else device.eigh(A)[0]


def left_vectors(A: Array) -> tuple[Array, Array]:
    """Return left singular vectors and singular values, both in descending order.

    Parameters
    ----------
    A : array of shape (n, rows, columns)
        Matrices with at least as many rows as columns, in double precision.

    Returns
    -------
    vectors : array of shape (n, rows, columns)
        The left singular vectors; those of singular values of zero are arbitrary.
    values : array of shape (n, columns)
        The singular values.

    Examples
    --------
    >>> left_vectors(np.array([[[3.0], [4.0]]]))[1]
    array([[5.]])
    """
    device = device_of(A)
    if device is not None:
        return device.left_vectors(A)
    vectors, values, _ = np.linalg.svd(A, full_matrices=False)
    return vectors, values
