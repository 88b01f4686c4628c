"""How much of each coordinate of a map is not a function of the coordinates before it."""

from typing import Any

import numpy as np

from manifoldry.extension.regression import coordinate_redundancy
from manifoldry.metrics.pair import read_embedding
from manifoldry.util.typing import Array


def redundancy(embedding: Any) -> Array:
    """Error of predicting each coordinate from those before it, relative to its spread.

    Every coordinate is regressed on the earlier ones, locally and leaving each point out; the
    root mean squared error is divided by the coordinate's standard deviation. Near 0 a coordinate
    repeats what the others say, as the second Laplacian eigenmap of a long strip does; near 1
    (beyond, where a fit misleads) nothing in it can be predicted: it is new, or noise. The first
    has nothing before it and gets 1. The order counts: x² follows from x, and x not from x².

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        A map, made here or elsewhere; rows of NaN are left out.

    Returns
    -------
    array of shape (n_components,)

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import redundancy
    >>> x = np.linspace(0, np.pi, 300)
    >>> rng = np.random.default_rng(0)
    >>> redundancy(np.column_stack([np.cos(x), np.cos(2 * x), rng.normal(size=300)])).round(1)
    array([1., 0., 1.])
    """
    Y = read_embedding(embedding)
    return coordinate_redundancy(Y[~np.isnan(Y).any(axis=1)])
