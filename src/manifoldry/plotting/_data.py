"""From what users pass (arrays, frames, fitted estimators) to checked arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manifoldry.util.typing import Array


def read_points(embedding: Any, components: Sequence[int] | None = None) -> Array:
    """Return an embedding as a finite array of one to three columns."""
    Y = _numbers("embedding", _fitted(embedding, "embedding_"))
    Y = Y[:, None] if Y.ndim == 1 else Y
    if Y.ndim != 2 or Y.size == 0:
        raise ValueError(f"embedding has shape {Y.shape}; pass (n_samples, n_components)")
    if components is not None:
        Y = Y[:, _columns(components, Y.shape[1])]
    if Y.shape[1] > 3:
        raise ValueError(
            f"embedding has {Y.shape[1]} columns, at most 3 can be drawn; "
            "choose some with components=(0, 1)"
        )
    # Rows of NaN are points that a policy left off the map; matplotlib leaves them out as well.
    _check_finite("embedding", Y[~np.isnan(Y).all(axis=1)])
    if np.isnan(Y).all():
        raise ValueError("embedding is NaN everywhere; there is nothing to draw")
    return Y


def read_eigenvalues(eigenvalues: Any) -> Array:
    """Return eigenvalues as a finite vector; of an estimator all that it computed."""
    if hasattr(eigenvalues, "computed_eigenvalues_"):
        computed = np.asarray(eigenvalues.computed_eigenvalues_)
        return computed[np.isfinite(computed)]  # the last is NaN where there is no further one
    values = _numbers("eigenvalues", _fitted(eigenvalues, "eigenvalues_"))
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"eigenvalues have shape {values.shape}; pass a vector of at least one")
    _check_finite("eigenvalues", values[:, None])
    return values


def read_path(path: Any) -> Any:
    """Return the path of a homotopy, with at least one map."""
    found = _fitted(path, "path_")
    if found is None:
        name = type(path).__name__
        raise ValueError(
            f"this {name} followed no homotopy, so it has no path_; fit {name}(homotopy=True)"
        )
    if not (hasattr(found, "embeddings") and hasattr(found, "steps")):
        raise TypeError(
            f"path is of type {type(found).__name__}; pass a fitted iterative estimator or a Path"
        )
    if not found.embeddings:
        raise ValueError("the path has no steps; there is nothing to draw")
    return found


def read_trace(trace: Any) -> Any:
    """Return the steps of a search as a structured array of at least one."""
    steps = np.asarray(_fitted(trace, "trace_"))
    wanted = ("value", "evaluations", "parameter")
    if steps.dtype.names is None or not set(wanted).issubset(steps.dtype.names):
        raise TypeError(
            f"trace has no fields {', '.join(wanted)}; pass a fitted iterative estimator or its "
            "trace_"
        )
    if steps.size == 0:
        raise ValueError("the trace has no steps; there is nothing to draw")
    return steps


def read_curve(name: str, curve: Any) -> tuple[Array, Array, Array | None]:
    """Return x, y and the error of a curve given as y, (x, y) or (x, y, error)."""
    parts = curve if isinstance(curve, tuple) else (None, curve)
    if len(parts) not in (2, 3):
        given = f"curves[{name!r}] has {len(parts)} parts"
        raise ValueError(f"{given}; pass y, (x, y) or (x, y, error)")
    y = np.atleast_1d(_numbers(f"curves[{name!r}]", parts[1]))
    x = _numbers(f"curves[{name!r}]", np.arange(1, len(y) + 1) if parts[0] is None else parts[0])
    if y.ndim != 1 or x.shape != y.shape:
        raise ValueError(
            f"curves[{name!r}] has x of shape {x.shape} and y of shape {y.shape}; "
            "pass two vectors of one length"
        )
    return x, y, _read_error(name, parts[2], len(y)) if len(parts) == 3 else None


def _read_error(name: str, error: Any, n: int) -> Array:
    error = _numbers(f"the error of curves[{name!r}]", error)
    if error.shape not in ((n,), (2, n)):
        raise ValueError(
            f"the error of curves[{name!r}] has shape {error.shape}; "
            f"pass ({n},), or (2, {n}) for below and above"
        )
    return np.broadcast_to(error, (2, n))


def _fitted(thing: Any, attribute: str) -> Any:
    """Take the attribute of an estimator; anything that is not an estimator is data."""
    if hasattr(thing, attribute):
        return getattr(thing, attribute)
    if hasattr(thing, "fit") and hasattr(thing, "get_params"):
        name = type(thing).__name__
        raise ValueError(f"{name} has no {attribute}; call fit first, or pass an array")
    return thing


def _numbers(name: str, values: Any) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} holds {array.dtype}, which cannot be drawn; pass real numbers")
    return array.astype(float)


def _columns(components: Sequence[int], available: int) -> list[int]:
    chosen = [int(component) for component in components]
    if not chosen or len(chosen) > 3 or not all(0 <= c < available for c in chosen):
        raise ValueError(
            f"components={tuple(chosen)} must be one to three columns in 0..{available - 1}"
        )
    return chosen


def _check_finite(name: str, rows: Array) -> None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise ValueError(
            f"{name} has NaN or infinity in {bad.size} of {len(rows)} rows (first: row {bad[0]}); "
            "drop those rows, and the same ones of color"
        )
