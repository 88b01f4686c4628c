"""A polynomial that approximates the inverse of a graph matrix."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.util.checks import check_count, check_positive
from manifoldry.util.sparse_products import product
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class ChebyshevInverse:
    """Approximate A⁻¹ by p(D⁻¹A)·D⁻¹, with D the diagonal of A and p a Chebyshev polynomial.

    A is a Laplacian plus a multiple of the identity, so that the eigenvalues of D⁻¹A are at most
    two. On those from 2/`condition` to 2 the polynomial is close to the inverse; smaller ones,
    which belong to joint movements of many points, are filtered as if they were about as large as
    the lower end. For elastic embeddings of 10 000 digits searches take one and a half times as
    many steps as with an accurate inverse, to the same minimum, and an eighth of the time.

    Unlike conjugate gradients it is the same linear operator for every gradient, as L-BFGS
    assumes. It is symmetric and, since the degree of 1 − λ·p(λ) is odd, positive definite.
    Products are in single precision, which is accurate enough for a direction.

    Parameters
    ----------
    degree : int, default=5
        Degree of 1 − λ·p(λ), odd; one more than the number of products with the matrix.
    condition : float, default=40.0
        Ratio of the ends of the interval on which the polynomial approximates the inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> A = sparse.csr_array(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    >>> solve = ChebyshevInverse(degree=41).solver(A)
    >>> solve(np.array([[1.0], [0.0]])).ravel().round(3)
    array([0.667, 0.333])
    """

    degree: int = 5
    condition: float = 40.0

    def __post_init__(self) -> None:
        check_count("degree", self.degree)
        if self.degree % 2 == 0:
            raise ValueError(
                f"degree={self.degree} must be odd, so that the polynomial is positive; pass "
                f"degree={self.degree + 1}"
            )
        if check_positive("condition", self.condition) <= 1:
            raise ValueError(f"condition={self.condition} must be greater than 1; pass 40")

    def solver(self, A: sparse.csr_array) -> Callable[[Array], Array]:
        """Return the function that multiplies (n, k) arrays by the approximate inverse."""
        single = sparse.csr_array(A, dtype=np.float32)
        inverse = (1 / A.diagonal()).astype(np.float32)[:, None]

        def solve(B: Array) -> Array:
            scale = np.abs(B).max(axis=0)
            scale[scale == 0] = 1.0
            X = self._iterate(single, inverse, (B / scale).astype(np.float32))
            return np.asarray(X * scale)

        return solve

    def _iterate(self, A: sparse.csr_array, inverse: Array, R: Array) -> Array:
        """Chebyshev's iteration from zero; its residual `R` begins as the right-hand side."""
        middle, half = 1 + 1 / self.condition, 1 - 1 / self.condition  # of the interval up to two
        ratio = half / middle
        step = inverse * R / np.float32(middle)
        X = step.copy()
        for _ in range(self.degree - 1):
            R -= product(A, step)
            last, ratio = ratio, 1 / (2 * middle / half - ratio)
            step = np.float32(ratio * last) * step + np.float32(2 * ratio / half) * (inverse * R)
            X += step
        return X
