"""Which entries of an AnnData are data, and where results are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from manifoldry.util.array_like import array_like, is_annotated
from manifoldry.util.checks import check_count
from manifoldry.util.typing import Array, Matrix

# scanpy computes neighbors from principal components if there are more variables than this.
_MAX_VARIABLES = 50


def check_annotated(adata: Any) -> Any:
    """Return `adata`; TypeError if it is no AnnData."""
    if not is_annotated(adata):
        raise TypeError(f"adata must be an AnnData, not {type(adata).__name__}")
    return adata


def representation(adata: Any, use_rep: str | None, n_pcs: int | None) -> Matrix:
    """Rows of data that scanpy would choose.

    ``use_rep="X"`` or ``n_pcs=0`` mean ``X``, another `use_rep` an entry of ``obsm`` or
    ``layers``. By default it is ``obsm["X_pca"]`` if there are more than 50 variables or `n_pcs`
    is passed, otherwise ``X``.
    """
    if use_rep is None and n_pcs is None and adata.n_vars <= _MAX_VARIABLES:
        use_rep = "X"
    if use_rep == "X" or (use_rep is None and n_pcs == 0):
        return array_like(adata, "adata")
    if use_rep is None and "X_pca" not in adata.obsm:
        raise ValueError(
            f"adata has {adata.n_vars} variables and no obsm['X_pca']; call sc.pp.pca(adata), or "
            "pass use_rep='X' or another key of obsm"
        )
    X = np.asarray(array_like((adata, use_rep or "X_pca"), "use_rep"))
    if n_pcs is None:
        return X
    if check_count("n_pcs", n_pcs) > X.shape[1]:
        raise ValueError(
            f"n_pcs={n_pcs} is more than the {X.shape[1]} columns of "
            f"obsm[{use_rep or 'X_pca'!r}]; pass n_pcs={X.shape[1]} or fewer"
        )
    return X[:, :n_pcs]


class Keys(NamedTuple):
    """Keys of the coordinates in ``obsm`` and of the description in ``uns``."""

    obsm: str
    uns: str

    @classmethod
    def of(cls, name: str, key_added: str | None) -> Keys:
        """As scanpy: `key_added` in both places, or ``X_name`` and ``name``."""
        return cls(f"X_{name}", name) if key_added is None else cls(key_added, key_added)


def store_coordinates(
    adata: Any, keys: Keys, coordinates: Array, description: Mapping[str, Any]
) -> None:
    """Write coordinates into ``obsm`` and what describes them into ``uns``."""
    adata.obsm[keys.obsm] = np.asarray(coordinates)
    adata.uns[keys.uns] = writable(description)


def writable(values: Mapping[str, Any]) -> dict[str, Any]:
    """The entries as what an ``.h5ad`` file can store; None is left out, objects become text."""
    return {str(name): _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return writable(value)
    if isinstance(value, bool | str | np.ndarray):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return np.array(value, dtype=object)
    return repr(value)
