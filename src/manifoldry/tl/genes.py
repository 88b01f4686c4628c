"""Expression of given genes, as the first step of a model that maps cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from manifoldry.util.array_like import annotated_of, array_like, is_annotated
from manifoldry.util.typing import Matrix
from manifoldry.util.validation import read_rows


class GeneExpression(TransformerMixin, BaseEstimator):
    """Select genes by name, and normalize counts.

    In front of a model it makes sure that new cells are read as those of the fit: genes are found
    by their names in whatever order they are, others are dropped, and a missing gene is an error.

    Parameters
    ----------
    genes : sequence of str, default=None
        Names of genes; None means all genes of the data of the fit.
    counts : bool, default=True
        Whether the values are counts. They are then divided by their sum over these genes in each
        cell, multiplied by `target_sum`, and replaced by log(1 + x). Otherwise they are used as
        they are.
    target_sum : float, default=None
        Sum of the counts of each cell after the division; None means the median over the cells of
        the fit.

    Attributes
    ----------
    feature_names_in_ : array of shape (n_genes,)
        The genes.
    n_features_in_ : int
        Number of genes.
    target_sum_ : float or None
        Value of `target_sum` that was used; None for values that are not counts.

    See Also
    --------
    fit_atlas : puts it in front of a method.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"CD4": [1.0, 0.0], "CD8A": [3.0, 2.0], "ACTB": [9.0, 7.0]})
    >>> step = GeneExpression(["CD8A", "CD4"], counts=False).fit(cells)
    >>> step.transform(cells)
    array([[3., 1.],
           [2., 0.]])
    """

    def __init__(
        self,
        genes: Sequence[str] | None = None,
        *,
        counts: bool = True,
        target_sum: float | None = None,
    ) -> None:
        self.genes = genes
        self.counts = counts
        self.target_sum = target_sum

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the names of the genes, and the usual sum of counts.

        Parameters
        ----------
        X : AnnData, (AnnData, layer) or data frame
            Cells, with the names of their genes.
        y : ignored
            Not used, present for API consistency.

        Returns
        -------
        GeneExpression
            The fitted transformer itself.
        """
        present = gene_names(X)
        if present is None:
            raise TypeError(
                f"X is of type {type(X).__name__}, which has no names of genes; pass an AnnData or "
                "a data frame"
            )
        names = present if self.genes is None else list(map(str, self.genes))
        if not names:
            raise ValueError("genes is empty; pass at least one name")
        if twice := _repeated(names):
            raise ValueError(f"genes occur twice, such as {twice[:3]}; make their names unique")
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.target_sum_: float | None = None
        if self.counts:
            totals = self._totals(self._selected(X))
            self.target_sum_ = float(self.target_sum or np.median(totals[totals > 0]))
        return self

    def transform(self, X: Any) -> Matrix:
        """Select and normalize the values of the genes, in the order of the fit.

        Parameters
        ----------
        X : AnnData, (AnnData, layer), data frame, array or sparse matrix
            Cells; without names of genes, one column for each gene in the order of the fit.

        Returns
        -------
        array or sparse array of shape (n_cells, n_genes)
            The values.
        """
        check_is_fitted(self)
        selected = self._selected(X)
        if self.target_sum_ is None:
            return selected
        totals = self._totals(selected)
        factor = np.divide(self.target_sum_, totals, where=totals > 0, out=np.zeros(len(totals)))
        factor = factor.astype(selected.dtype)
        if sparse.issparse(selected):
            return sparse.csr_array(sparse.diags_array(factor) @ selected).log1p()
        return np.log1p(selected * factor[:, None])

    def inverse_transform(self, X: Any) -> Matrix:
        """Return values of the genes; of counts, those of cells whose sum is ``target_sum_``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_cells, n_genes)
            Values as ``transform`` returns them.

        Returns
        -------
        array or sparse array of shape (n_cells, n_genes)
            The values.
        """
        check_is_fitted(self)
        rows = read_rows(X, least=0)
        return rows if self.target_sum_ is None else np.expm1(rows)

    def left_out(self, X: Any) -> int:
        """Count the genes of new data that are not used.

        Parameters
        ----------
        X : AnnData, frame or array of shape (n_cells, n_genes)
            The data.

        Returns
        -------
        int
            Number of genes that the model was not fitted on; 0 if they have no names.
        """
        present = gene_names(X)
        return 0 if present is None else len(present) - self.n_features_in_

    def _selected(self, X: Any) -> Matrix:
        _check_not_logarithms(X, self.counts)
        columns = read_rows(in_order(X, list(self.feature_names_in_)), least=0)
        if columns.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {columns.shape[1]} columns, but the model has {self.n_features_in_} genes; "
                "pass an AnnData, whose genes are found by name"
            )
        return columns

    def _totals(self, counts: Matrix) -> Any:
        values = counts.data if sparse.issparse(counts) else counts
        if values.size and values.min() < 0:
            raise ValueError(
                f"counts must not be negative, but {values.min():g} occurs; pass the layer with "
                "the counts, or counts=False for values that are normalized already"
            )
        return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def gene_names(X: Any) -> list[str] | None:
    """Names of the columns of an AnnData, a layer of one or a data frame; None for arrays."""
    annotated = annotated_of(X)
    names = getattr(X, "columns", None) if annotated is None else annotated.var_names
    return None if names is None else [str(name) for name in names]


def in_order(X: Any, genes: Sequence[str]) -> Any:
    """Columns of the genes, found by name; all columns of an array.

    ValueError if a gene is missing or occurs twice.
    """
    present = gene_names(X)
    values = array_like(X)
    if present is None:
        return values
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    places = {name: j for j, name in enumerate(present)}
    if missing := [str(name) for name in genes if name not in places]:
        some = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise ValueError(
            f"{len(missing)} of the {len(genes)} genes of the model are missing: {some}; rename "
            "genes if the names are of another kind, such as identifiers, or fit the model again "
            "with the genes that both data sets have (genes=...)"
        )
    if twice := sorted(set(_repeated(present)) & set(genes)):
        raise ValueError(
            f"{twice[0]!r} occurs {present.count(twice[0])} times in var_names; call "
            "adata.var_names_make_unique()"
        )
    columns = [places[name] for name in genes]
    return values if columns == list(range(len(present))) else values[:, columns]


def _repeated(names: list[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _check_not_logarithms(X: Any, counts: bool) -> None:
    """Raise ValueError if counts are expected and scanpy says that X has logarithms."""
    if counts and is_annotated(X) and "log1p" in getattr(X, "uns", {}):
        raise ValueError(
            "adata.X has logarithms (uns['log1p'] says so), but counts=True; pass layer= with the "
            "counts, or counts=False"
        )
