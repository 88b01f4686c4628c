"""A spectral problem: the operator, the wanted end of its spectrum and the constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from manifoldry.device import Device, device_of
from manifoldry.eigen.gram import Gram
from manifoldry.eigen.on_device import DeviceOperator, GramOnDevice, operator_on
from manifoldry.eigen.standard import SpectrumEnd, StandardProblem, orthonormal_basis
from manifoldry.util.arrays import namespace, to_numpy
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    asymmetric_product,
    largest_asymmetry,
    power_of_two_scale,
    square_tiles,
)

if TYPE_CHECKING:
    from manifoldry.eigen.spectrum import Spectrum

End = Literal["smallest", "largest"]
Scale = Literal["unit", "sqrt_n", "sqrt_eigenvalue"]

# Beyond these magnitudes squares over- or underflow in double precision.
SMALLEST_ENTRY, LARGEST_ENTRY = 1e-140, 1e140

# How the eigenvectors of a problem of order n become coordinates.
_SCALES: dict[str, Callable[[Spectrum, int], Array]] = {
    "unit": lambda s, n: s.vectors.copy(),
    "sqrt_n": lambda s, n: np.sqrt(n) * s.vectors,
    "sqrt_eigenvalue": lambda s, n: s.vectors * np.sqrt(np.where(s.significant, s.values, 0.0)),
}


@dataclass(frozen=True, eq=False)
class SpectralProblem:
    """Eigenvectors at one end of A f = λ B f with fᵀBf = 1 and CᵀBf = 0.

    A spectral method only has to define this problem; an :class:`~manifoldry.eigen.EigenSolver`
    solves it.

    Parameters
    ----------
    operator : ndarray, sparse array, LinearOperator or Gram of shape (n, n)
        The symmetric operator A.
    end : {"smallest", "largest"}
        Which end of the spectrum.
    mass : array of shape (n,), optional
        The positive diagonal of B; the identity by default.
    deflate : array of shape (n,) or (n, t), optional
        Known eigenvectors f to exclude, such as the constant.
    constraint : array of shape (n,) or (n, c), optional
        Columns of C, on the host or on a device; they need not span an invariant subspace. In
        single precision, products with them take half the time, and CᵀBf = 0 holds to about 1e-6.
    bounds : (float, float), optional
        An interval that contains the spectrum of B^{-1/2} A B^{-1/2}: (0, 2) for a normalized
        Laplacian, (0, inf) for any positive semidefinite operator.
    scale : {"unit", "sqrt_n", "sqrt_eigenvalue"}, default="unit"
        Scale of the coordinates: unit eigenvectors, times √n, or times √λ.
    graph : callable, optional
        Returns the symmetric sparse weights (n, n) of the neighbor graph, if the operator is not
        one itself; needed to estimate gradients of the eigenvectors.

    See Also
    --------
    EigenSolver : solves it.
    Gram : an operator F Fᵀ that is not formed.
    manifoldry.spectral.PosedOnGraph : a problem together with the data it was built from.

    Examples
    --------
    The path on four points; its smallest eigenvalue, 0, belongs to the constant.

    >>> import numpy as np
    >>> from manifoldry.eigen import Dense, SpectralProblem
    >>> L = np.diag([1.0, 2, 2, 1]) - np.eye(4, k=1) - np.eye(4, k=-1)
    >>> problem = SpectralProblem(L, end="smallest", deflate=np.ones(4))
    >>> Dense().solve(problem, 2, np.random.default_rng(0)).values.round(3)
    array([0.586, 2.   ])
    """

    operator: Matrix
    end: End
    mass: Array | None = None
    deflate: Array | None = None
    constraint: Array | None = None
    bounds: tuple[float, float] | None = None
    scale: Scale = "unit"
    graph: Callable[[], sp.csr_array] | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "operator", _checked_operator(self.operator))
        check_option("end", self.end, tuple(map(str, SpectrumEnd)))
        check_option("scale", self.scale, tuple(_SCALES))
        set_field(self, "mass", _checked_mass(self.mass, self.n))
        set_field(self, "deflate", _checked_columns("deflate", self.deflate, self.n))
        set_field(self, "constraint", _checked_columns("constraint", self.constraint, self.n))
        set_field(self, "bounds", _checked_bounds(self.bounds))

    @property
    def n(self) -> int:
        """Order of the operator."""
        return int(self.operator.shape[0])

    @property
    def largest(self) -> bool:
        """Whether the largest eigenvalues are wanted."""
        return SpectrumEnd(self.end) is SpectrumEnd.LARGEST

    @property
    def is_gram(self) -> bool:
        """Whether the coordinates are √λ·v, as for a Gram matrix."""
        return self.scale == "sqrt_eigenvalue"

    def standard(self, device: Device | None = None) -> StandardProblem:
        """Return the standard eigenproblem for g = B^{1/2} f with constraints Qᵀg = 0.

        Parameters
        ----------
        device : Device, optional
            The device that will have its operator and constraints in its memory; the CPU by
            default.

        Returns
        -------
        StandardProblem
            The problem.
        """

        def placed(X: Array) -> Array:
            return to_numpy(X) if device is None else device.array(X, keep=False)

        A = self.operator if device is None else operator_on(device, self.operator)
        root = np.ones(self.n) if self.mass is None else np.sqrt(self.mass)
        if self.mass is not None:
            A = _congruent(A, placed(1 / root))
        Q: Array = placed(np.empty((self.n, 0)))
        if self.deflate is not None:
            Q = orthonormal_basis(placed(root)[:, None] * placed(self.deflate))
        n_deflated, single = Q.shape[1], False
        if self.constraint is not None:
            # Only the span of the columns counts, and single precision has a small range.
            single = self.constraint.dtype == np.float32
            scale = (root / power_of_two_scale(root)).astype(self.constraint.dtype)
            C = orthonormal_basis(placed(scale)[:, None] * placed(self.constraint), beyond=Q)
            Q = namespace(Q).hstack([Q, C[:, n_deflated:].astype(Q.dtype, copy=False)])
        end = SpectrumEnd(self.end)
        return StandardProblem(A, Q, end, self.bounds, n_deflated, single, device)

    def restrict(self, rows: IntArray) -> SpectralProblem:
        """Return the problem on the rows of one connected component of a sparse operator.

        `deflate` and `constraint` are restricted to these rows.

        Parameters
        ----------
        rows : array of int
            The rows.

        Returns
        -------
        SpectralProblem
            The problem of this component.
        """
        return replace(
            self,
            operator=self.operator[rows][:, rows],
            mass=None if self.mass is None else self.mass[rows],
            deflate=None if self.deflate is None else self.deflate[rows],
            constraint=None if self.constraint is None else self.constraint[rows],
            graph=None if self.graph is None else partial(_submatrix, self.graph, rows),
        )

    def coordinates(self, spectrum: Spectrum) -> Array:
        """Return the embedding: the eigenvectors scaled according to `scale`.

        With "sqrt_eigenvalue", columns of eigenvalues that are negative or zero to rounding are
        zero.

        Parameters
        ----------
        spectrum : Spectrum
            The eigenpairs of this problem.

        Returns
        -------
        array of shape (n, k)
            The coordinates.
        """
        return _SCALES[self.scale](spectrum, self.n)


def _submatrix(graph: Callable[[], sp.csr_array], rows: IntArray) -> sp.csr_array:
    return graph()[rows][:, rows]


def _congruent(A: Matrix, s: Array) -> Matrix:
    """Return diag(s) A diag(s) in the representation of A, exactly symmetric."""
    if isinstance(A, Gram | DeviceOperator):
        return A.scaled(s)
    if sp.issparse(A):
        # The product s_i s_j is the same number on both sides of the diagonal.
        C = A.tocoo()
        return sp.csr_array((C.data * (s[C.row] * s[C.col]), (C.row, C.col)), shape=A.shape)
    if isinstance(A, np.ndarray):
        out = np.outer(s, s)
        out *= A
        return out

    def product(X: Array) -> Array:
        column = s.reshape(-1, *[1] * (X.ndim - 1))
        return column * (A @ (column * X))

    return LinearOperator(A.shape, matvec=product, matmat=product, dtype=np.float64)


def _checked_operator(A: Matrix) -> Matrix:
    """Return A in double precision after checking its shape, entries and symmetry."""
    if isinstance(A, GramOnDevice | DeviceOperator):  # checked when they were made
        return A
    if isinstance(A, Gram):
        entries = A.factor
    elif isinstance(A, LinearOperator):
        entries = A
    elif sp.issparse(A):
        entries = A = sp.csr_array(A, dtype=np.float64)
    else:
        entries = A = np.asarray(A, dtype=np.float64)
    if len(A.shape) != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ValueError(f"the operator of a spectral problem must be square, not {A.shape}")
    if not isinstance(entries, LinearOperator):
        largest = _check_magnitude(entries.data if sp.issparse(entries) else entries, A.shape[0])
        if isinstance(A, np.ndarray | sp.sparray):
            _check_symmetry(A, largest)
    return A


def _check_magnitude(entries: Array, order: int) -> float:
    """Return the largest modulus; ValueError if entries are not finite or squares leave range."""
    # max and min propagate NaN and infinity without a temporary as large as the operator.
    largest = max(entries.max(), -entries.min()) if entries.size else 0.0
    if not np.isfinite(largest):
        raise ValueError("the operator has entries that are NaN or infinite; check the data")
    if largest != 0 and order > 1:  # a single point needs no eigenvectors
        check_squares(float(largest), "largest entry")
    return float(largest)


def check_squares(value: float, what: str) -> None:
    """Raise ValueError if sums of squares leave the range of double precision.

    Parameters
    ----------
    value : float
        A size of the operator.
    what : str
        Which one.
    """
    if not SMALLEST_ENTRY <= value <= LARGEST_ENTRY:
        raise ValueError(
            f"the operator's {what} is {value:.1e}, and its square leaves the range of double "
            f"precision (allowed are {SMALLEST_ENTRY:.0e} to {LARGEST_ENTRY:.0e}); rescale the "
            "data or the weights"
        )


def _check_symmetry(A: Matrix, largest: float, rounding: float = 1e-8) -> None:
    """Raise ValueError if |A − Aᵀ| exceeds `rounding` times the largest entry."""
    if asymmetric_product(A) <= rounding * largest:
        return
    worst = _asymmetry(A)
    if worst > rounding * largest:
        raise ValueError(
            f"the operator is not symmetric: entries differ from the transpose by up to "
            f"{worst:.1e}, with a largest entry of {largest:.1e}; symmetrize it, for example by "
            "(A + A.T) / 2"
        )


def _asymmetry(A: Matrix, compile_above: float = 1e6) -> float:
    """Largest modulus of the entries of A − Aᵀ; for a dense A in tiles that fit into the cache.

    Sparse matrices of more than `compile_above` entries are not transposed.
    """
    if sp.issparse(A):
        return largest_asymmetry(A, compile_above)
    return max(
        float(np.abs(A[rows, columns] - A[columns, rows].T).max())
        for rows, columns in square_tiles(len(A))
    )


def _checked_mass(mass: Array | None, n: int) -> Array | None:
    if mass is None:
        return None
    mass = np.asarray(mass, dtype=np.float64)
    if mass.shape != (n,):
        raise ValueError(f"mass has shape {mass.shape} but the operator needs ({n},)")
    if not (np.isfinite(mass).all() and (mass > 0).all()):
        i = int(np.argmin(np.where(np.isfinite(mass), mass, -np.inf)))
        raise ValueError(
            f"mass must be positive and finite, but mass[{i}]={mass[i]}; remove or connect "
            "isolated vertices"
        )
    return mass


def _checked_columns(name: str, columns: Array | None, n: int) -> Array | None:
    if columns is None:
        return None
    if device_of(columns) is None:
        columns = np.asarray(columns)
    if columns.dtype != np.float32:
        columns = columns.astype(np.float64, copy=False)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or columns.shape[0] != n:
        raise ValueError(f"{name} has shape {columns.shape} but must have n={n} rows")
    if not namespace(columns).isfinite(columns).all():
        raise ValueError(f"{name} has entries that are NaN or infinite")
    return columns


def _checked_bounds(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    if bounds is None:
        return None
    low, high = map(float, bounds)
    if not low <= high:
        raise ValueError(f"bounds={bounds} must be an interval (low, high) with low <= high")
    return low, high
