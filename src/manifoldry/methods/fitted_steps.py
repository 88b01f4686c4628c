"""Fitted steps before a model: joined with it, divided from it, and undone after its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline


def joined(steps: list[tuple[str, Any]], name: str, model: Any) -> Any:
    """A pipeline of fitted steps and a fitted model, or the model if there are none."""
    return Pipeline([*steps, (name, model)]) if steps else model


def divided(model: Any) -> tuple[list[Any], Any]:
    """The steps before a model, and the model."""
    if not isinstance(model, Pipeline):
        return [], model
    return [step for _, step in model.steps[:-1]], model.steps[-1][1]


def prepared(steps: Sequence[Any], X: Any) -> Any:
    """New data after the steps."""
    for step in steps:
        X = step.transform(named_like(step, X))
    return X


def named_like(step: Any, X: Any) -> Any:
    """The data as a frame with the columns that a step was fitted on; as they are if it had none.

    It takes columns by name then, or warns about an array without names.
    """
    names = getattr(step, "feature_names_in_", None)
    if names is None or hasattr(X, "columns") or len(names) != X.shape[1] or issparse(X):
        return X
    try:
        from pandas import DataFrame
    except ImportError:  # then it was fitted on a frame of another package
        return X
    return DataFrame(X, columns=names)


def undone(steps: Sequence[Any], X: Any) -> Any:
    """Data as they were before the steps. An imputer has nothing to undo."""
    for step in reversed(steps):
        X = X if isinstance(step, SimpleImputer) else step.inverse_transform(X)
    return X


def decoded(model: Any, Z: Any) -> tuple[Any, Any]:
    """Data at positions Z of a map, and the distances of these from it: above 2, off the map."""
    steps, last = divided(model)
    X, distance = last.inverse_transform(Z, return_distance=True)
    return undone(steps, X), np.asarray(distance)
