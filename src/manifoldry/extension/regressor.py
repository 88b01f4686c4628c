"""Out-of-sample extensions and inverses by any scikit-learn regressor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier, is_clusterer

from manifoldry.extension.base import Extension
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import plan_memory


@dataclass(frozen=True, eq=False)
class RegressorExtension(Extension):
    """Coordinates of new points, predicted by a fitted regressor.

    New points of components that are not embedded, if there are any, have no coordinates: then
    `formula`, the extension of the method, tells which points those are.
    """

    regressor: Any
    n_components: int
    formula: Extension | None = None

    def transform(self, X: Matrix) -> Array:
        Y = predictions("extension", self.regressor, X, self.n_components)
        if self.formula is not None:
            Y[np.isnan(self.formula.transform(X)).any(axis=1)] = np.nan
        return Y

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
    """Return an unfitted copy of the regressor passed as the parameter `name`.

    None for None and for one of the given `names`.
    """
    if value is None or (isinstance(value, str) and value in names):
        return None
    if isinstance(value, type) or not _is_regressor(value):
        choice = ", ".join(["None", *map(repr, names)])
        own = " (the method defines no inverse of its own)" if names == ("regression",) else ""
        raise TypeError(
            f"{name}={value!r} must be {choice}{own} or a regressor with fit and predict; pass an "
            "instance, such as sklearn.neighbors.KNeighborsRegressor()"
        )
    try:
        return clone(value)
    except TypeError as error:
        raise TypeError(
            f"{name}={value!r} cannot be cloned; make its class a subclass of "
            "sklearn.base.BaseEstimator, whose __init__ only stores its parameters"
        ) from error


def _is_regressor(value: Any) -> bool:
    if not (hasattr(value, "fit") and hasattr(value, "predict")):
        return False
    tagged = hasattr(value, "__sklearn_tags__")
    return not (tagged and (is_classifier(value) or is_clusterer(value)))


def check_can_fit(name: str, regressor: Any, X: Matrix | None, instead: str) -> None:
    """Raise ValueError if there are no rows `X` to fit the regressor to, but `instead` of them."""
    if regressor is not None and X is None:
        raise ValueError(
            f"{name}={regressor!r} is fitted to data, but fit was given {instead}; pass the data, "
            f"or {name}=None"
        )


def fit_extension(regressor: Any, X: Matrix, Y: Array, formula: Extension) -> RegressorExtension:
    """Fit `regressor` to predict the coordinates `Y` from the rows of `X`."""
    rows = embedded(Y)
    complete = len(rows) == len(Y)
    fitted = fit_regressor("extension", regressor, X[rows], Y[rows])
    return RegressorExtension(fitted, Y.shape[1], None if complete else formula)


def fit_inverse(regressor: Any, X: Matrix, Y: Array) -> RegressorInverse:
    """Fit `regressor` to predict the rows of `X` from the coordinates `Y`."""
    if sparse.issparse(X):
        size = 8.0 * X.shape[0] * X.shape[1]
        plan_memory(size, "the data as a dense target of the inverse", "pass inverse=None")
        X = X.toarray()
    rows = embedded(Y)
    return RegressorInverse(fit_regressor("inverse", regressor, Y[rows], X[rows]), X.shape[1])


def fit_regressor(name: str, regressor: Any, X: Matrix, Y: Array) -> Any:
    """Fit the regressor passed as the parameter `name`; name that parameter if it fails."""
    try:
        return regressor.fit(X, Y)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}={regressor!r} could not be fitted ({error}); a regressor of a single target "
            "needs sklearn.multioutput.MultiOutputRegressor around it"
        ) from error


def embedded(Y: Array) -> IntArray:
    """Indices of the points that have coordinates: some policies leave components out."""
    return np.flatnonzero(np.isfinite(Y).all(axis=1))


def predictions(name: str, regressor: Any, X: Matrix, n_columns: int) -> Array:
    """Predictions of the regressor passed as the parameter `name`, (n, n_columns); checked."""
    values = np.array(regressor.predict(X), dtype=np.float64)
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
