"""Out-of-sample extensions and inverses by any scikit-learn regressor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from manifoldry.extension.base import Extension
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_memory


@dataclass(frozen=True, eq=False)
class RegressorExtension(Extension):
    """Coordinates of new points, predicted by a fitted regressor."""

    regressor: Any
    n_components: int

    def transform(self, X: Matrix) -> Array:
        return predictions("extension", self.regressor, X, self.n_components)

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> Matrix:
        raise ValueError(
            f"extension={self.regressor!r} replaces the formula of the method, and has no "
            "equivalent kernel; pass extension=None"
        )


@dataclass(frozen=True, eq=False)
class RegressorInverse:
    """Data at given coordinates, predicted by a fitted regressor."""

    regressor: Any
    n_features: int

    def predict(self, Z: Array) -> Array:
        """Data at the coordinates `Z`, (n_new, n_features)."""
        return predictions("inverse", self.regressor, Z, self.n_features)


def check_regressor(name: str, value: Any, names: tuple[str, ...] = ()) -> Any:
    """Return the regressor passed as the parameter `name`; None for None and the given `names`."""
    if value is None or (isinstance(value, str) and value in names):
        return None
    if isinstance(value, type) or not (hasattr(value, "fit") and hasattr(value, "predict")):
        choice = ", ".join(["None", *map(repr, names)])
        raise TypeError(
            f"{name}={value!r} must be {choice} or a regressor with fit and predict; pass an "
            "instance, such as sklearn.neighbors.KNeighborsRegressor()"
        )
    return value


def fit_extension(regressor: Any, X: Matrix | None, Y: Array) -> RegressorExtension:
    """Fit a copy of `regressor` to predict the coordinates `Y` from the rows of `X`."""
    if X is None:
        raise ValueError(
            f"extension={regressor!r} is fitted to data, and the graph passed to fit has none; "
            "fit the data themselves, or pass extension=None"
        )
    rows = embedded(Y)
    return RegressorExtension(clone(regressor).fit(X[rows], Y[rows]), Y.shape[1])


def fit_inverse(regressor: Any, X: Matrix | None, Y: Array) -> RegressorInverse:
    """Fit a copy of `regressor` to predict the rows of `X` from the coordinates `Y`."""
    if X is None:
        raise ValueError(
            f"inverse={regressor!r} is fitted to data, and fit was given precomputed values; "
            "fit the data themselves, or pass inverse=None"
        )
    if sparse.issparse(X):
        size = 8.0 * X.shape[0] * X.shape[1]
        plan_memory(size, "the data as a dense target of the inverse", "pass inverse=None")
        X = X.toarray()
    rows = embedded(Y)
    return RegressorInverse(clone(regressor).fit(Y[rows], X[rows]), X.shape[1])


def embedded(Y: Array) -> IntArray:
    """Indices of the points that have coordinates: some policies leave components out."""
    return np.flatnonzero(np.isfinite(Y).all(axis=1))


def predictions(name: str, regressor: Any, X: Matrix, n_columns: int) -> Array:
    """Predictions of the regressor passed as the parameter `name`, (n, n_columns); checked."""
    values = np.asarray(regressor.predict(X), dtype=np.float64)
    if values.ndim == 1 and n_columns == 1:
        values = values[:, None]  # scikit-learn's regressors drop the axis of a single target
    if values.shape != (X.shape[0], n_columns):
        raise ValueError(
            f"{name}={regressor!r} predicted an array of shape {values.shape} where "
            f"{(X.shape[0], n_columns)} is needed; pass a regressor of several targets, such as "
            "sklearn.multioutput.MultiOutputRegressor around it"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name}={regressor!r} predicted NaN or infinity; pass another regressor")
    return values
