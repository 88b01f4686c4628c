"""Randomized block Krylov solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manifoldry.eigen.dense import dense_basis
from manifoldry.eigen.krylov import start_block, too_small
from manifoldry.eigen.solver import PairSolver, converged, rayleigh_ritz, small_pairs
from manifoldry.eigen.standard import StandardProblem
from manifoldry.util.arrays import namespace
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class Randomized(PairSolver):
    """Restarted block Krylov iteration from a random block.

    Suitable for the largest eigenvalues of large dense or implicit operators: it uses products
    with blocks of vectors, which are efficient, and finds repeated eigenvalues.

    Parameters
    ----------
    oversampling : int, default=10
        Block columns in addition to the wanted pairs.
    power : int, default=4
        Products with the operator before the first restart.
    max_power : int, default=16
        Upper bound on this number, which doubles with each restart. Typical spectra for this
        solver need one or two short runs; otherwise a larger Krylov space helps more than another
        restart.
    max_iter : int, default=30
        Largest number of restarts.

    See Also
    --------
    Dense : for a few thousand points.
    Lanczos : products with single vectors.
    Auto : chooses a solver by the size and structure of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Randomized, SpectralProblem
    >>> problem = SpectralProblem(np.diag(2.0 ** -np.arange(100.0)), end="largest")
    >>> Randomized().solve(problem, 3, np.random.default_rng(0)).values.round(6)
    array([1.  , 0.5 , 0.25])
    """

    extra_pairs_are_cheap = True
    any_namespace = True

    oversampling: int = 10
    power: int = 4
    max_power: int = 16
    max_iter: int = 30

    def _basis(self, standard: StandardProblem, k: int, rng: np.random.Generator) -> Array:
        block = k + self.oversampling
        if too_small(standard, block):
            return dense_basis(standard, k)
        longest = min(self.max_power, standard.dimension // (2 * block))
        start = start_block(standard, block, rng)
        X = namespace(start).linalg.qr(start)[0]
        power = min(self.power, longest)
        for _ in range(self.max_iter):
            X = _krylov_ritz(standard, X, power)
            power = min(2 * power, longest)
            values, V, residuals = rayleigh_ritz(standard, X[:, :k])
            if converged(standard.norm, values, residuals):
                break
        return V


def _krylov_ritz(standard: StandardProblem, X: Array, power: int) -> Array:
    """Return the Ritz vectors of [X, AX, …, A^power X], from the wanted end inwards."""
    basis, images, xp = X, standard.project(standard.apply(X)), namespace(X)
    new = images
    for _ in range(power):
        # Orthogonalize twice against the whole basis, so that no orthogonality is lost.
        for _ in range(2):
            new = xp.linalg.qr(new - basis @ (basis.T @ new))[0]
        new = xp.linalg.qr(standard.project(new))[0]
        image = standard.project(standard.apply(new))
        basis, images = xp.hstack([basis, new]), xp.hstack([images, image])
        new = image
    C = small_pairs(standard, basis.T @ images)[1]
    return basis @ C[:, : X.shape[1]]
