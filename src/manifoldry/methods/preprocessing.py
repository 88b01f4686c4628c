"""What is done to data before the method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from manifoldry.dimension.consensus import Consensus, half_fraction, known_column_fractions

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
    scale : bool, optional
        Whether to standardize columns to mean 0 and variance 1; sparse data keep their mean. None
        to decide by the data, see :meth:`decided`.
    pca : int, optional
        Number of principal components.
    seed : int
        Seed of the principal components of large data.
    """

    impute: str | None = None
    log1p: bool = False
    scale: bool | None = None
    pca: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Preprocessing:
        """The steps that the parameters of a command ask for."""
        return cls(
            params["impute"], params["log1p"], params["scale"], params["pca"], params["seed"]
        )

    def decided(
        self, X: Any, names: Sequence[str] | None, note: Callable[[str], None]
    ) -> Preprocessing:
        """The same steps, with `scale` decided if it is None.

        Columns are standardized if one of them has nearly all the variance, as when units differ.
        Columns without names, such as pixels, and logarithms keep their units.
        """
        if self.scale is not None or self.log1p or names is None or sparse.issparse(X):
            return replace(self, scale=bool(self.scale))
        fractions = known_column_fractions(X)
        top = int(fractions.argmax())
        is_dominant = len(names) > 2 and fractions[top] > Consensus.max_column_fraction
        if is_dominant:
            note(
                f"column {names[top]!r} has {fractions[top]:.1%} of the variance, as if units "
                "differed, so columns are standardized; --no-scale (scale=False) keeps their units"
            )
        return replace(self, scale=bool(is_dominant))

    def note_uneven_columns(self, X: Any, note: Callable[[str], None]) -> None:
        """Say if half of the columns hardly vary compared with the others, unless `scale` is given.

        It may be so on purpose, so nothing is changed. Logarithms keep their units, as above.
        """
        if self.scale is not None or self.log1p or sparse.issparse(X):
            return
        fractions = known_column_fractions(X)
        half, varying = half_fraction(fractions), np.count_nonzero(fractions)
        if half < Consensus.min_half_fraction:
            note(
                f"{varying // 2} of {varying} columns together have {half:.1g} of the variance, so "
                "distances hardly depend on them; if units differ, standardize with --scale "
                "(scale=True)"
            )

    def fit(self, X: Any, note: Callable[[str], None]) -> tuple[list[tuple[str, Any]], Any]:
        """The fitted steps by name, and the data that they make."""
        steps = []
        for name, step in self._steps(X, note):
            if name == "log1p":
                check_above_minus_one(X)
            X = step.fit_transform(X)
            steps.append((name, step))
        return steps, X

    def _steps(self, X: Any, note: Callable[[str], None]) -> list[tuple[str, Any]]:
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
                note(f"pca={self.pca}: data of this shape have {most} components")
            solver = "arpack" if is_sparse else "auto"
            count = min(self.pca, most)
            steps.append(("pca", PCA(count, svd_solver=solver, random_state=self.seed)))
        return steps


def check_above_minus_one(X: Any) -> None:
    """Raise ValueError for values that have no log(1 + x)."""
    values = X.data if sparse.issparse(X) else X
    lowest = float(np.nanmin(values)) if values.size else 0.0
    if lowest <= -1:
        raise ValueError(
            f"log1p needs values above -1, but the smallest is {lowest:g}; it is meant for counts"
        )
