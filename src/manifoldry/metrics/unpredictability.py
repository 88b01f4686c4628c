"""Unpredictability of each coordinate from the coordinates before it."""

from typing import Any

import numpy as np

from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.extension.regression import coordinate_unpredictability
from manifoldry.metrics.pair import read_embedding
from manifoldry.util.typing import Array


@on_device_of_arguments
def unpredictability(embedding: Any) -> Array:
    """Relative error of predicting each coordinate from those before it.

    Every coordinate is predicted from the earlier ones by leave-one-out local regression; the root
    mean squared error is divided by the coordinate's standard deviation, which is the error of
    predicting it by its mean. If the regression does not do better than the mean, the value is 1,
    so values are between 0 and 1. A value near 0 means that the coordinate is redundant, as the
    second Laplacian eigenmap of a long strip; a value near 1 that it cannot be predicted: it is
    independent, or noise. The first coordinate gets 1. The order matters: x² is a function of x,
    but x not of x².

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components), or a fitted estimator
        The embedding, made by any package; rows of NaN are ignored.

    Returns
    -------
    array of shape (n_components,)
        The relative error of each coordinate, from 0 for redundant to 1 for unpredictable.

    See Also
    --------
    manifoldry.NonRedundant : makes spectral coordinates that are not redundant.
    manifoldry.plotting.plot_redundancy : draws the values.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.metrics import unpredictability
    >>> x = np.linspace(0, np.pi, 300)
    >>> rng = np.random.default_rng(0)
    >>> unpredictability(np.column_stack([np.cos(x), np.cos(2 * x), rng.normal(size=300)])).round(1)
    array([1., 0., 1.])
    """
    Y = read_embedding(embedding)
    return coordinate_unpredictability(Y[~np.isnan(Y).any(axis=1)])
