"""What is done to data before the method, and undone after its inverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from manifoldry.cli.console import Console

_STRATEGIES = {"median": "median", "mean": "mean", "frequent": "most_frequent", "zero": "constant"}


@dataclass(frozen=True)
class Preprocessing:
    """Steps in the order in which they are applied.

    Parameters
    ----------
    impute : {"median", "mean", "frequent", "zero"}, optional
        What to put for missing values of a column.
    log1p : bool
        Whether to take log(1 + x), as for counts.
    scale : bool
        Whether to standardize columns to mean 0 and variance 1; sparse data keep their mean.
    pca : int, optional
        Number of principal components.
    seed : int
        Seed of the principal components of large data.
    """

    impute: str | None = None
    log1p: bool = False
    scale: bool = False
    pca: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Preprocessing:
        """The steps that the parameters of a command ask for."""
        return cls(
            params["impute"], params["log1p"], bool(params["scale"]), params["pca"], params["seed"]
        )

    def fit(self, X: Any, console: Console) -> tuple[list[tuple[str, Any]], Any]:
        """The fitted steps by name, and the data that they make."""
        steps = []
        for name, step in self._steps(X, console):
            if name == "log1p":
                _check_above_minus_one(X)
            X = step.fit_transform(X)
            steps.append((name, step))
        return steps, X

    def _steps(self, X: Any, console: Console) -> list[tuple[str, Any]]:
        is_sparse = sparse.issparse(X)
        steps: list[tuple[str, Any]] = []
        if self.impute is not None:
            imputer = SimpleImputer(strategy=_STRATEGIES[self.impute], keep_empty_features=True)
            steps.append(("impute", imputer))
        if self.log1p:
            log = FunctionTransformer(
                np.log1p, np.expm1, accept_sparse=True, check_inverse=False,
                feature_names_out="one-to-one",
            )  # fmt: skip
            steps.append(("log1p", log))
        if self.scale:
            steps.append(("scale", StandardScaler(with_mean=not is_sparse)))
        if self.pca is not None:
            most = min(X.shape) - is_sparse
            if self.pca > most:
                console.note(f"--pca {self.pca}: data of this shape have {most} components")
            solver = "arpack" if is_sparse else "auto"
            count = min(self.pca, most)
            steps.append(("pca", PCA(count, svd_solver=solver, random_state=self.seed)))
        return steps


def _check_above_minus_one(X: Any) -> None:
    values = X.data if sparse.issparse(X) else X
    lowest = float(np.nanmin(values)) if values.size else 0.0
    if lowest <= -1:
        raise ValueError(
            f"--log1p needs values above -1, but the smallest is {lowest:g}; it is meant for counts"
        )


def joined(steps: list[tuple[str, Any]], name: str, model: Any) -> Any:
    """A pipeline of fitted steps and a fitted model, or the model if there are none."""
    return Pipeline([*steps, (name, model)]) if steps else model


def divided(model: Any) -> tuple[list[Any], Any]:
    """The steps before a model, and the model."""
    if not isinstance(model, Pipeline):
        return [], model
    return [step for _, step in model.steps[:-1]], model.steps[-1][1]


def prepared(steps: list[Any], X: Any) -> Any:
    """New data after the steps."""
    for step in steps:
        X = step.transform(X)
    return X


def decoded(model: Any, Z: Any) -> Any:
    """Data at the positions Z of the map; an imputer has nothing to undo."""
    steps, last = divided(model)
    X = last.inverse_transform(Z)
    for step in reversed(steps):
        X = X if isinstance(step, SimpleImputer) else step.inverse_transform(X)
    return X
