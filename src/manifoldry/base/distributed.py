"""Estimators and data that are distributed: fits to landmarks or to all rows, and lazy results.

A fitted estimator has a model of landmarks, ``landmark_model_``: an estimator of the same class
that was fitted in the memory of one worker. It places new rows, in memory or not, and is what is
pickled and saved. ``embedding_`` is a Dask array of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manifoldry.base.dominant_points import (
    takes_n_neighbors,
    unchecked_dominance,
    warn_if_dominated,
)
from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import broadcast, compute, delayed, tasks_of_fit
from manifoldry.exceptions import NoveltyWarning, ignoring, recording, warn
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.util.checks import as_generator
from manifoldry.util.lazy import random_sample_of
from manifoldry.util.named_rows import named_rows, rows_for
from manifoldry.util.refit import replacing_fit
from manifoldry.util.typing import Array, IntArray

# Landmarks of estimators that do not have a number of their own, in `_landmarks`.
LANDMARKS = 20_000
# Methods whose results have a row for each row of their argument.
_BY_ROWS = ("transform", "inverse_transform", "novelty", "predict", "score_samples")


@dataclass(frozen=True, eq=False)
class DistributedFit:
    """What a fit to distributed data found.

    Parameters
    ----------
    model : estimator
        Fitted to landmarks, or made of results for all rows; places new rows.
    embedding : dask.array.Array of shape (n_samples, n_components), or None
        The coordinates of all rows, if the estimator has an embedding.
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
    _check_can_fit(estimator, X)
    fit_refined = _fit_with_refinement(estimator) if current_options().refine else None
    with tasks_of_fit():
        if isinstance(X, DistributedGraph):
            return _set_fitted(estimator, X.names, _fit_to_graph(estimator, X))
        rows = Rows.read(X)
        rows.check_not_fewer(2, f" by {type(estimator).__name__}")
        fit_all = getattr(estimator, "_fit_all_rows", None)
        if fit_refined is not None:
            found = fit_refined(rows)
        elif fit_all is None or current_options().landmarks is not None:
            found = fit_to_landmarks(estimator, rows)
        else:
            found = fit_all(rows)
    return _set_fitted(estimator, rows.names, found)


def _fit_to_graph(estimator: Any, graph: DistributedGraph) -> DistributedFit:
    """Fit all rows of a neighbor graph."""
    fit = getattr(estimator, "_fit_all_rows", None)
    if fit is None or not getattr(estimator, "_accepts_distributed_graphs", False):
        raise TypeError(
            f"{type(estimator).__name__}.fit takes data, not a DistributedGraph; pass the data"
        )
    landmarks = current_options().landmarks
    if landmarks is not None:
        raise ValueError(
            f"landmarks={landmarks} fits a sample, but the graph has neighbors of all rows; pass "
            "the data, or leave out landmarks"
        )
    found: DistributedFit = fit(graph)
    return found


def _check_can_fit(estimator: Any, X: Any) -> None:
    """Raise an error if a sample of rows, or a part of them, is no input of the estimator."""
    name = type(estimator).__name__
    if not (hasattr(estimator, "transform") or hasattr(estimator, "score_samples")):
        raise TypeError(
            f"{name}.fit takes data in memory, not a Dask collection; pass a random sample, such "
            f"as {random_sample_of(X)}"
        )
    if get_tags(estimator).input_tags.pairwise:
        raise TypeError(
            f"this {name} takes precomputed values of all pairs of rows, which cannot be sampled "
            "by rows; pass the data, or precomputed values in memory"
        )


def fit_to_landmarks(estimator: Any, rows: Rows) -> DistributedFit:
    """Fit a random sample on one worker; all other rows are placed as new rows."""
    model, landmarks, _ = landmark_model(estimator, rows)
    some = f"{len(landmarks)} of {rows.n_samples} rows; the others are placed by transform"
    fitted_on = "all rows, on one worker" if len(landmarks) == rows.n_samples else some
    embedding = mapped(model, "transform", rows) if hasattr(model, "embedding_") else None
    labels = {"labels_": mapped(model, "predict", rows)} if hasattr(model, "labels_") else {}
    return DistributedFit(model, embedding, fitted_on, labels)


def _fit_with_refinement(estimator: Any) -> Any:
    """The method that fits a sample, places the other rows, and moves all of them."""
    fit = getattr(estimator, "_fit_refined", None)
    if fit is None:
        raise ValueError(
            f"refine={current_options().refine} moves single rows to lower an objective, which "
            f"{type(estimator).__name__} does not do; pass refine=0"
        )
    return fit


class Landmarks(NamedTuple):
    """A model of a sample of the rows."""

    model: Any
    rows: IntArray
    pieces: list[Any]
    """Those of each block, delayed."""


def landmark_model(estimator: Any, rows: Rows) -> Landmarks:
    """Return a clone that was fitted to a random sample of the rows."""
    options = current_options()
    size = landmarks_of(estimator) if options.landmarks is None else options.landmarks
    rng = as_generator(getattr(estimator, "random_state", None), unset=0)
    drawn, pieces = rows.sample(size, rng)
    unfitted = clone(estimator)
    if hasattr(unfitted, "set_output"):
        unfitted.set_output(transform="default")
    what = f"fitting {type(estimator).__name__} to {len(drawn)} rows"
    model, said = fitted_on_worker(unfitted, pieces, rows.names, what)
    say(said)
    if hasattr(model, "embedding_"):
        warn_if_dominated(model.embedding_, takes_n_neighbors(model), rows=drawn)
    return Landmarks(model, drawn, pieces)


def landmarks_of(estimator: Any) -> int:
    """Number of landmarks of an estimator, or of the estimator inside it if that has fewer."""
    own: int = getattr(estimator, "_landmarks", LANDMARKS)
    inner = getattr(estimator, "estimator", None)
    return own if inner is None else min(own, landmarks_of(inner))


def fitted_on_worker(
    unfitted: Any, pieces: list[Any], names: Array | None, what: str
) -> tuple[Any, list[Any]]:
    """Return an estimator that was fitted to pieces of data by one task, and its warnings."""
    import dask

    # Not limited to one thread: it is the only task.
    fit = dask.delayed(with_warnings)(_fitted_to, unfitted, pieces, names)
    [found] = compute([fit], what, verbose=current_options().verbose)
    return found


def placed_blocks(model: Any, blocks: Iterable[Any]) -> list[Any]:
    """Return delayed coordinates of blocks of rows, by the ``transform`` of a fitted model."""
    width = _width(model, "transform")
    function = partial(_applied, method="transform", columns=width, dtype=None, options={})
    call, shared = delayed(function), broadcast(_snapshot(model))
    return [call(block, shared) for block in blocks]


def mapped(model: Any, method: str, rows: Rows, **options: Any) -> Any:
    """Return the Dask array of what a method of a fitted model makes of the rows.

    Warnings that some rows are unlike the training data are left out: nobody would see those of
    workers. `novelty` has the distances of all rows.
    """
    model = _snapshot(model)
    width = _width(model, method)
    dtype = _dtype(model, method, rows)
    distance = bool(options.get("return_distance", False))
    columns = None if width is None else width + distance
    call = partial(_applied, method=method, columns=columns, dtype=dtype, options=options)
    found = rows.mapped(call, model, columns, np.float64 if distance else dtype)
    return (found[:, :width].astype(dtype), found[:, width]) if distance else found


def _snapshot(model: Any) -> Any:
    """A copy of a fitted model that a later fit does not change, and that returns arrays."""
    model = copy(model)
    vars(model).pop("_sklearn_output_config", None)
    return model.set_output(transform="default") if hasattr(model, "set_output") else model


def _width(model: Any, method: str) -> int | None:
    """Number of columns of a method's result; None for one value per row."""
    if method == "transform":
        return len(model.get_feature_names_out())
    return int(model.n_features_in_) if method == "inverse_transform" else None


def _dtype(model: Any, method: str, rows: Rows) -> Any:
    """Type of the values of a method's result."""
    if method == "predict":
        return model.labels_.dtype if hasattr(model, "labels_") else np.intp
    return np.float64 if method in ("novelty", "score_samples") else rows.dtype


def map_collection(estimator: Any, method: str, X: Any, **options: Any) -> Any:
    """Return what a method of a fitted estimator makes of a Dask collection, lazily."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if isinstance(X, DistributedGraph):
        raise TypeError(
            f"{name}.{method} takes data, not a DistributedGraph; pass the data. The coordinates "
            f"of its rows are embedding_ after {name}().fit(graph)"
        )
    if method not in _BY_ROWS:
        raise TypeError(
            f"{name}.{method} takes data in memory, not a Dask collection; pass a random sample, "
            f"such as {random_sample_of(X)}"
        )
    other = set(options) - {"return_distance"}
    if other:
        raise TypeError(
            f"{name}.{method} of a Dask collection takes no {min(other)}; pass blocks in memory, "
            "such as X.blocks[0].compute()"
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
    known = getattr(model, "feature_names_in_", None)
    if known is not None and rows.names is not None and not np.array_equal(known, rows.names):
        raise ValueError(
            f"the columns of X are not those of fit, or in another order: "
            f"{_difference(list(known), list(rows.names))}; pass X[list(model.feature_names_in_)]"
        )
    if (known is None) != (rows.names is None):
        _warn_of_names(type(model).__name__, known is not None)
    if rows.n_features != model.n_features_in_:
        raise ValueError(
            f"X has {rows.n_features} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )


def _warn_of_names(name: str, has_names: bool) -> None:
    """Warn like scikit-learn if names of columns cannot be compared."""
    if has_names:
        text = f"X does not have valid feature names, but {name} was fitted with feature names"
    else:
        text = f"X has feature names, but {name} was fitted without feature names"
    warn(text, UserWarning)


def _difference(known: list[str], names: list[str]) -> str:
    """The first difference between the names of columns."""
    missing = [name for name in known if name not in names]
    unknown = [name for name in names if name not in known]
    if missing or unknown:
        return (
            f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} was not a column of fit"
        )
    j = next(i for i, pair in enumerate(zip(known, names, strict=False)) if pair[0] != pair[1])
    return f"column {j} is {names[j]!r} and was {known[j]!r}"


def with_warnings(function: Callable[..., Any], *args: Any) -> tuple[Any, list[Any]]:
    """The result of a function and the warnings of the call; runs on a worker."""
    with recording() as said:
        result = function(*args)
    return result, said


def say(said: Iterable[Any]) -> None:
    """Issue the warnings of workers, each once."""
    for message, category in dict.fromkeys(said):
        warn(message, category)


def _fitted_to(estimator: Any, pieces: list[Array], names: Array | None) -> Any:
    with unchecked_dominance():  # it would number the rows of the sample
        return estimator.fit(named_rows(np.concatenate(pieces), names))


def _applied(
    block: Array,
    model: Any,
    *,
    method: str,
    columns: int | None,
    dtype: Any,
    options: dict[str, Any],
) -> Array:
    """The result of a method for one block; runs on a worker."""
    if len(block) == 0:
        return np.empty(0 if columns is None else (0, columns), dtype)
    rows = block if method == "inverse_transform" else rows_for(model, block)
    with ignoring(NoveltyWarning):
        found = getattr(model, method)(rows, **options)
    return np.column_stack(found) if isinstance(found, tuple) else np.asarray(found, dtype)


def replacing_distributed_fit(estimator: Any) -> AbstractContextManager[None]:
    """Context that removes what a fit to distributed data has set, and restores it if it raises."""
    return replacing_fit(estimator, ("_fitted_names",))


def _set_fitted(estimator: Any, names: Array | None, found: DistributedFit) -> Any:
    """Replace the fitted attributes of an estimator, and return it.

    Others stay: those of users, and those of scikit-learn, whose pipelines set some around a fit.
    """
    fitted = _whole_attributes(found.model) | found.attributes
    fitted |= {
        "n_features_in_": found.model.n_features_in_,
        "landmark_model_": found.model,
        "fitted_on_": found.fitted_on,
    }
    if found.embedding is not None:
        fitted["embedding_"] = found.embedding
    if names is not None:
        fitted["feature_names_in_"] = names
    private = set(vars(found.model)) - set(vars(clone(found.model)))  # of a fit in memory
    with replacing_fit(estimator, private):
        vars(estimator).update(fitted)
    if hasattr(estimator, "_fitted_names"):  # what `pose` replaces
        vars(estimator)["_fitted_names"] = frozenset(fitted)
    return estimator


def _whole_attributes(model: Any) -> dict[str, Any]:
    """The fitted attributes of a model of landmarks that say something about all rows."""
    # A wrapper has those of the estimator inside it, too. Properties are not set.
    names = [name for name in dir(model) if name.endswith("_") and name[0] != "_"]
    names = [name for name in names if not hasattr(type(model), name) and hasattr(model, name)]
    values: dict[str, Any] = {name: getattr(model, name) for name in names}
    n_landmarks = len(values.get("embedding_", ()))
    return {
        name: value for name, value in values.items() if _describes_the_whole(value, n_landmarks)
    }


def _describes_the_whole(value: Any, n_landmarks: int) -> bool:
    """Whether a fitted attribute is a number, a text, or values that are not of single landmarks.

    Whole numbers in arrays are rows or labels of landmarks.
    """
    if isinstance(value, np.ndarray):
        per_row = value.ndim == 0 or len(value) in (0, n_landmarks)
        return value.dtype.kind in "fV" and not per_row
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value) and len(value) != n_landmarks
    return value is None or isinstance(value, bool | int | float | str | np.generic)
