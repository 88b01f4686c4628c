"""Reading and validation of plot arguments: arrays, data frames, fitted estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manifoldry.util.array_like import array_like, embedding_like
from manifoldry.util.typing import Array


def read_points(embedding: Any, components: Sequence[int] | None = None) -> Array:
    """Return an embedding as a finite array of one to three columns."""
    Y = _numbers("embedding", _fitted_attribute(embedding, "embedding_"))
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Y.ndim != 2 or Y.size == 0:
        raise ValueError(
            f"embedding has shape {Y.shape}, expected (n_samples, n_components), both at least 1"
        )
    if components is not None:
        Y = Y[:, _columns(components, Y.shape[1])]
    if Y.shape[1] > 3:
        raise ValueError(
            f"embedding has {Y.shape[1]} columns, of which at most 3 can be drawn; "
            "select some, for example with components=(0, 1)"
        )
    # Rows of NaN are points that were not embedded; matplotlib does not draw them.
    _check_finite("embedding", Y[~np.isnan(Y).all(axis=1)])
    if np.isnan(Y).all():
        raise ValueError("embedding is NaN everywhere, so there are no points to draw")
    return Y


def read_eigenvalues(eigenvalues: Any) -> Array:
    """Return eigenvalues as a finite vector; for an estimator all that it computed."""
    if hasattr(eigenvalues, "computed_eigenvalues_"):
        computed = np.asarray(eigenvalues.computed_eigenvalues_)
        return computed[np.isfinite(computed)]  # the last is NaN if there are no further ones
    values = _numbers("eigenvalues", _fitted_attribute(eigenvalues, "eigenvalues_"))
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"eigenvalues have shape {values.shape}, expected a nonempty vector")
    _check_finite("eigenvalues", values[:, None])
    return values


def read_path(path: Any) -> Any:
    """Return the path of a homotopy, with at least one step."""
    found = _fitted_attribute(path, "path_", _ITERATIVE)
    if found is None:
        name = type(path).__name__
        raise ValueError(
            f"this {name} was fitted without a homotopy, so it has no path; fit it with "
            "optimizer='homotopy'"
        )
    if not (hasattr(found, "embeddings") and hasattr(found, "steps")):
        raise TypeError(
            f"path is of type {type(found).__name__}; pass a fitted iterative estimator, or a Path"
        )
    if not found.embeddings:
        raise ValueError("the path has no steps, so there are no embeddings to draw")
    return found


def read_trace(trace: Any) -> Any:
    """Return the trace of an optimization as a nonempty structured array."""
    steps = np.asarray(array_like(_fitted_attribute(trace, "trace_", _ITERATIVE), "trace"))
    wanted = ("value", "evaluations", "parameter")
    if steps.dtype.names is None or not set(wanted).issubset(steps.dtype.names):
        name = f"{type(trace).__name__}.trace_" if hasattr(trace, "trace_") else "trace"
        raise TypeError(
            f"{name} must have the fields {', '.join(wanted)}; {_ITERATIVE}, or its trace_"
        )
    if steps.size == 0:
        raise ValueError("the trace has no steps, so there is no curve to draw")
    return steps


def read_curve(name: str, curve: Any) -> tuple[Array, Array, Array | None]:
    """Return x, y and the error, or None, of a curve given as y, (x, y) or (x, y, error)."""
    parts = curve if isinstance(curve, tuple) else (None, curve)
    if len(parts) not in (2, 3):
        given = f"curves[{name!r}] has {len(parts)} parts"
        raise ValueError(f"{given}; pass y, (x, y) or (x, y, error)")
    y = np.atleast_1d(_numbers(f"curves[{name!r}]", parts[1]))
    x = _numbers(f"curves[{name!r}]", np.arange(1, len(y) + 1) if parts[0] is None else parts[0])
    if y.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"curves[{name!r}] has x of shape {x.shape} and y of shape {y.shape}; "
            "they must be vectors of equal length"
        )
    return x, y, _read_error(name, parts[2], len(y)) if len(parts) == 3 else None


def _read_error(name: str, error: Any, n: int) -> Array:
    error = _numbers(f"the error of curves[{name!r}]", error)
    if error.shape not in ((n,), (2, n)):
        raise ValueError(
            f"the error of curves[{name!r}] has shape {error.shape}, "
            f"expected ({n},), or (2, {n}) for below and above"
        )
    return np.broadcast_to(error, (2, n))


_ITERATIVE = "pass a fitted SNE, SymmetricSNE, TSNE, ElasticEmbedding or UKR"


def _fitted_attribute(source: Any, attribute: str, remedy: str = "pass an array instead") -> Any:
    """Attribute of a fitted estimator; anything that is not an estimator is returned as it is."""
    if hasattr(source, attribute):
        return getattr(source, attribute)
    if hasattr(source, "fit") and hasattr(source, "get_params"):
        name = type(source).__name__
        if not _is_fitted(source):
            raise ValueError(f"{name} is not fitted; call fit first")
        raise ValueError(f"{name} has no {attribute}; {remedy}")
    return source


def _is_fitted(estimator: Any) -> bool:
    """Same rule as scikit-learn's check_is_fitted, without importing scikit-learn."""
    if hasattr(estimator, "__sklearn_is_fitted__"):
        return bool(estimator.__sklearn_is_fitted__())
    return any(name.endswith("_") and not name.startswith("__") for name in vars(estimator))


def _numbers(name: str, values: Any) -> Array:
    array = np.asarray(embedding_like(values, name))
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}, which cannot be drawn; pass real numbers")
    return array.astype(float)


def n_columns(embedding: Any) -> int:
    """Number of columns of an embedding, at least one."""
    shape = _numbers("embedding", _fitted_attribute(embedding, "embedding_")).shape
    return max(1, shape[1]) if len(shape) == 2 else 1


def _columns(components: Sequence[int], available: int) -> list[int]:
    chosen = [int(component) for component in components]
    if not chosen or len(chosen) > 3 or not all(0 <= c < available for c in chosen):
        raise ValueError(
            f"components={tuple(chosen)} must be one to three column indices in 0..{available - 1}"
        )
    return chosen


def _check_finite(name: str, rows: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise ValueError(
            f"{name} has NaN or infinity in {bad.size} of {len(rows)} rows (first: row {bad[0]}); "
            "drop these rows, here and in color"
        )
