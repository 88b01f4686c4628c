"""Diffusion pseudotime: distances between points along random walks of any length."""

import numpy as np

from manifoldry.exceptions import RankWarning, warn
from manifoldry.extension.laplacian import LaplacianExtension
from manifoldry.util.typing import Array


def pseudotime_from(
    root: Array, component: int, extension: LaplacianExtension, negligible: float = 0.1
) -> Array:
    """Return √Σₖ (ℓₖ/(1 − ℓₖ))²·(ψₖ(i) − ψₖ(root))² for each training point i.

    Parameters
    ----------
    root : array of shape (n_components,)
        The functions of `extension` at the root.
    component : int
        Connected component of the root. Points of other components are infinitely far away, and
        those that are not embedded have no pseudotime.
    extension : LaplacianExtension
        Has eigenfunctions of the random walk, of any scale, and their eigenvalues 1 − ℓ.
    negligible : float, default=0.1
        Warn if ℓ/(1 − ℓ) of the last eigenpair is more than this fraction of the first.
    """
    labels = extension.layout.labels
    rows = labels == component
    values = np.maximum(extension.values[component], np.finfo(float).eps)
    weights = (1 - values) / values
    _warn_if_truncated(weights, int(rows.sum()), negligible)
    F, degree = extension.functions[rows], extension.degree[rows]
    norms = np.sqrt(degree @ F**2 / degree.sum())
    # Functions beyond the size of a small component are zero and contribute nothing.
    scale = np.divide(weights, norms, out=np.zeros_like(norms), where=norms > 0)
    out = np.where(labels < 0, np.nan, np.inf)
    out[rows] = np.linalg.norm((F - root) * scale, axis=1)
    return out


def _warn_if_truncated(weights: Array, n: int, negligible: float) -> None:
    k = len(weights)
    if k < n - 1 and weights[-1] > negligible * weights[0]:
        warn(
            f"pseudotime uses n_components={k} of {n - 1} eigenpairs, and the last of them has "
            f"{weights[-1] / weights[0]:.0%} of the weight of the first, so distances are too "
            f"short; pass a larger n_components, such as {max(15, 2 * k)}",
            RankWarning,
        )
