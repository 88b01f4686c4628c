"""Estimators and data that are distributed: fits to landmarks or to all rows, and lazy results.

A fitted estimator has a model of landmarks, ``landmark_model_``: an estimator of the same class
that was fitted in the memory of one worker. It places new rows, in memory or not, and is what is
pickled. ``embedding_`` is a Dask array of all rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import compute
from manifoldry.exceptions import warn
from manifoldry.util.checks import as_generator
from manifoldry.util.typing import Array

# Landmarks of estimators that do not have a number of their own.
LANDMARKS = 20_000
# Methods whose results have a row for each row of their argument, and those that have them, too.
_BY_ROWS = ("transform", "inverse_transform", "novelty", "predict")


@dataclass(frozen=True, eq=False)
class DistributedFit:
    """What a fit to distributed data found.

    Parameters
    ----------
    model : estimator
        Fitted to landmarks, or made of results for all rows; places new rows.
    embedding : dask.array.Array of shape (n_samples, n_components)
        The coordinates of all rows.
    fitted_on : str
        What was computed of all rows, and what of a sample.
    attributes : dict
        Further fitted attributes.
    """

    model: Any
    embedding: Any
    fitted_on: str
    attributes: dict[str, Any] = field(default_factory=dict)


def fit_collection(estimator: Any, X: Any) -> Any:
    """Fit an estimator to a Dask collection, or to a store that a path names.

    All that is computed is set at the end, so an earlier fit is kept if this one fails.
    """
    rows = Rows.read(X)
    fit_all = getattr(estimator, "_fit_all_rows", None)
    if fit_all is None or current_options().landmarks is not None:
        found = fit_to_landmarks(estimator, rows)
    else:
        found = fit_all(rows)
    _set_fitted(estimator, rows, found)
    return estimator


def fit_to_landmarks(estimator: Any, rows: Rows) -> DistributedFit:
    """Fit a random sample on one worker; all other rows are placed as new rows."""
    model, n_landmarks = landmark_model(estimator, rows)
    some = f"{n_landmarks} of {rows.n_samples} rows; the others are placed by transform"
    fitted_on = "all rows, on one worker" if n_landmarks == rows.n_samples else some
    return DistributedFit(model, mapped(model, "transform", rows), fitted_on)


def landmark_model(estimator: Any, rows: Rows) -> tuple[Any, int]:
    """Return a clone that was fitted to a random sample of the rows, and their number."""
    import dask

    options = current_options()
    size = LANDMARKS if options.landmarks is None else options.landmarks
    rng = as_generator(getattr(estimator, "random_state", None), unset=0)
    drawn, pieces = rows.sample(size, rng)
    unfitted = clone(estimator)
    if hasattr(unfitted, "set_output"):
        unfitted.set_output(transform="default")
    fit = dask.delayed(_fitted_to)(unfitted, pieces, rows.names)
    what = f"fitting {type(estimator).__name__} to {len(drawn)} rows"
    [(model, said)] = compute([fit], what, verbose=options.verbose)
    for message, category in said:
        warn(message, category)
    return model, len(drawn)


def mapped(model: Any, method: str, rows: Rows, **options: Any) -> Any:
    """Return the Dask array of what a method of a fitted model makes of the rows."""
    width = _width(model, method)
    dtype = {"novelty": np.float64, "predict": np.intp}.get(method, rows.dtype)
    call = partial(_applied, method=method, names=rows.names, options=options)
    if width is None or not options.get("return_distance", False):
        return rows.mapped(call, model, width, dtype)
    found = rows.mapped(call, model, width + 1, dtype)
    return found[:, :width], found[:, width]


def _width(model: Any, method: str) -> int | None:
    """Number of columns of a method's result; None for one value per row."""
    if method == "transform":
        return len(model.get_feature_names_out())
    return int(model.n_features_in_) if method == "inverse_transform" else None


def map_collection(estimator: Any, method: str, X: Any, **options: Any) -> Any:
    """Return what a method of a fitted estimator makes of a Dask collection, lazily."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if method not in _BY_ROWS:
        raise TypeError(
            f"{name}.{method} takes data in memory, not a Dask collection; pass a sample, such as "
            "X[:1000].compute()"
        )
    model = vars(estimator).get("landmark_model_", estimator)
    rows = Rows.read(X)
    if method != "inverse_transform":
        _check_columns(model, rows)
    elif rows.n_features != len(model.get_feature_names_out()):
        raise ValueError(
            f"X has {rows.n_features} columns, but the embedding has "
            f"{len(model.get_feature_names_out())}; pass one column per coordinate"
        )
    return mapped(model, method, rows, **options)


def _check_columns(model: Any, rows: Rows) -> None:
    if rows.n_features != model.n_features_in_:
        raise ValueError(
            f"X has {rows.n_features} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )
    known = getattr(model, "feature_names_in_", None)
    if known is not None and rows.names is not None and not np.array_equal(known, rows.names):
        j = int(np.argmax(known != rows.names))
        raise ValueError(
            f"the columns of X are not those of fit, or in another order: column {j} is "
            f"{rows.names[j]!r} and was {known[j]!r}; pass X[list(model.feature_names_in_)]"
        )


def _fitted_to(estimator: Any, pieces: list[Array], names: Array | None) -> tuple[Any, list[Any]]:
    """The fitted estimator and its warnings; runs on a worker."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        estimator.fit(_named(np.concatenate(pieces), names))
    return estimator, [(str(each.message), each.category) for each in said]


def _applied(
    block: Array, model: Any, *, method: str, names: Array | None, options: dict[str, Any]
) -> Array:
    """The result of a method for one block; runs on a worker."""
    if len(block) == 0:
        width = (
            len(model.get_feature_names_out()) if method == "transform" else model.n_features_in_
        )
        width += bool(options.get("return_distance"))
        return np.empty((0, width) if "transform" in method else 0)
    if hasattr(model, "set_output"):
        model.set_output(transform="default")
    known = getattr(model, "feature_names_in_", None)
    rows = (
        block if method == "inverse_transform" else _named(block, names if known is None else known)
    )
    found = getattr(model, method)(rows, **options)
    return np.column_stack(found) if isinstance(found, tuple) else found


def _named(rows: Array, names: Array | None) -> Any:
    """The rows as a data frame if their columns have names."""
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _set_fitted(estimator: Any, rows: Rows, found: DistributedFit) -> None:
    """Replace the fitted attributes of an estimator."""
    kept = {*estimator.get_params(deep=False), "_sklearn_output_config", "_metadata_request"}
    for name in set(vars(estimator)) - kept:
        delattr(estimator, name)
    fitted = {
        name: value
        for name, value in vars(found.model).items()
        if name.endswith("_") and not name.startswith("_") and _describes_the_whole(value)
    }
    fitted |= found.attributes
    fitted |= {
        "n_features_in_": rows.n_features,
        "landmark_model_": found.model,
        "embedding_": found.embedding,
        "fitted_on_": found.fitted_on,
    }
    if rows.names is not None:
        fitted["feature_names_in_"] = rows.names
    vars(estimator).update(fitted)


def _describes_the_whole(value: Any, most: int = 100) -> bool:
    """Whether a fitted attribute is a number, a text, or a short array, not one value per row."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and value.size > 0 and len(value) <= most
    return isinstance(value, bool | int | float | str | np.generic)
