"""Powers M^ν, 0 < ν, of a positive semidefinite matrix, times a block of vectors."""

from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import chebyshev
from scipy import sparse

from manifoldry.exceptions import ConvergenceWarning, warn
from manifoldry.optimize.guidance_matrix import extreme_eigenvalues
from manifoldry.util.arrays import namespace
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import plan_matrix


def eigenvalue_factor(M: Matrix) -> Array:
    """B with orthogonal columns and M = BBᵀ, one column V√d per positive eigenvalue d.

    Eigenvalues up to n times the machine precision, relative to the largest, count as zero.

    Examples
    --------
    >>> import numpy as np
    >>> np.abs(eigenvalue_factor(np.diag([4.0, 0.0])))
    array([[2.],
           [0.]])
    """
    n = M.shape[0]
    remedy = "guide by the sparse neighbor graph, or use whole powers"
    plan_matrix((n, n), 32, f"the eigenvectors of a guidance matrix of order {n}", remedy)
    values, vectors = np.linalg.eigh(M.toarray() if sparse.issparse(M) else M)
    positive = values > n * np.finfo(float).eps * values[-1]
    return np.asarray(vectors[:, positive] * np.sqrt(values[positive]))


def power_of_factor(B: Array, exponent: float, G: Array) -> Array:
    """M^ν·G = B diag(d)^(ν − 1) Bᵀ·G for the factor B of M; zero eigenvalues stay zero."""
    d = namespace(B).sum(B * B, axis=0)
    return B @ (d[:, None] ** (exponent - 1) * (B.T @ G))


@dataclass(frozen=True, eq=False)
class ChebyshevPower:
    """M^ν of a sparse matrix, fractional powers by a Chebyshev series.

    It converges geometrically if M is positive definite, and slowly if M has eigenvalues near zero.
    The polynomial is raised if it has negative values, so that the result is semidefinite.

    Parameters
    ----------
    M : sparse matrix of shape (n, n)
        The matrix.
    lowest, highest : float
        Bounds on its eigenvalues, nonnegative.
    tol : float
        Largest error of the series relative to `highest` to the power ν; a warning states a
        larger one.
    max_products : int
        Largest degree of the series, the number of products with M.
    """

    M: Matrix
    lowest: float
    highest: float
    tol: float = 1e-6
    max_products: int = 256
    _series: dict[float, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, M: Matrix, tol: float = 1e-3) -> "ChebyshevPower":
        """Bounds from the extreme eigenvalues, widened by their accuracy `tol`."""
        lowest, highest = extreme_eigenvalues(M, tol)
        return cls(M, max(0.0, lowest - tol * highest), highest * (1 + tol))

    def apply(self, exponent: float, G: Array) -> Array:
        """M^ν·G."""
        whole, fraction = divmod(exponent, 1)
        for _ in range(int(whole)):
            G = self.M @ G
        return G if fraction == 0 else self._sum(self.series(fraction), G)

    def series(self, fraction: float) -> Array:
        """Chebyshev coefficients of x^ν on the interval, as few as give the accuracy."""
        if fraction not in self._series:
            self._series[fraction] = self._fit(fraction)
        return self._series[fraction]

    def _fit(self, fraction: float) -> Array:
        check = np.cos(np.linspace(0, np.pi, 8 * self.max_products))
        exact = self._eigenvalues(check) ** fraction
        degree = 8
        while True:
            found = self._interpolate(fraction, degree)
            values = chebyshev.chebval(check, found)
            found[0] += max(0.0, -float(values.min()))
            error = float(np.abs(chebyshev.chebval(check, found) - exact).max())
            if error <= self.tol * self.highest**fraction:
                return found
            if degree == self.max_products:
                break
            degree = min(2 * degree, self.max_products)
        warn(
            f"M^{fraction:g} is approximated with an error of {error:.1g} by {degree} products, "
            f"because the guidance matrix has eigenvalues near zero (at least {self.lowest:.1g}); "
            "add a multiple of the identity to it for an accurate power",
            ConvergenceWarning,
        )
        return found

    def _interpolate(self, fraction: float, degree: int) -> Array:
        """Coefficients of the polynomial through x^ν at Chebyshev points."""
        nodes = chebyshev.chebpts1(degree + 1)
        products = chebyshev.chebvander(nodes, degree).T @ self._eigenvalues(nodes) ** fraction
        products[0] /= 2
        return np.asarray(products * 2 / (degree + 1))

    def _eigenvalues(self, t: Array) -> Array:
        """The point of the interval of eigenvalues that corresponds to t between −1 and 1."""
        return self.lowest + (self.highest - self.lowest) * (t + 1) / 2

    def _sum(self, coefficients: Array, G: Array) -> Array:
        """Σ cₖ Tₖ(A)·G by the recurrence of Chebyshev polynomials, A scaled to −1…1."""
        center, half = (self.highest + self.lowest) / 2, (self.highest - self.lowest) / 2

        def scaled(Z: Array) -> Array:
            return np.asarray((self.M @ Z - center * Z) / half)

        before, now = G, scaled(G)
        out = coefficients[0] * before + coefficients[1] * now
        for weight in coefficients[2:]:
            before, now = now, 2 * scaled(now) - before
            out = out + weight * now
        return np.asarray(out)
