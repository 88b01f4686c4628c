"""Neighbor graphs of distributed data in Zarr stores.

A store has a group for each kind of array, with an array for each part: ``neighbors`` (positions,
nearest first), ``distances``, ``rows`` (of the data, at the positions of the part) and, if wanted,
``points``. What is not an array is JSON: the attributes of the root. Nothing that is read can run
code: arrays of other kinds than numbers, or with unknown codecs, are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from manifoldry.distributed.collections import check_codecs, path_on_all_machines
from manifoldry.distributed.order import RowOrder
from manifoldry.distributed.scheduler import compute, delayed
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.writing import folder_replaced_at_once

if TYPE_CHECKING:
    from manifoldry.neighbors.distributed_graph import DistributedGraph

_FORMAT = "manifoldry neighbor graph"
_VERSION = 1
_KINDS = ("neighbors", "distances", "rows")


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(_is_count, value))


def _are_bounds(value: Any) -> bool:
    return _are_counts(value) and value[0] == 0 and all(a <= b for a, b in pairwise(value))


def _are_names(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(type(name) is str for name in value))


_VALID: dict[str, Callable[[Any], bool]] = {
    "n_neighbors": lambda k: _is_count(k) and k > 0,
    "n_features": _is_count,
    "metric": lambda name: name in ("euclidean", "cosine"),
    "recall": lambda value: isinstance(value, int | float) and 0 <= value <= 1,
    "search": lambda text: isinstance(text, str),
    "bounds": _are_bounds,
    "counts": _are_counts,
    "names": _are_names,
}


def write_graph(
    graph: DistributedGraph,
    path: str | os.PathLike[str],
    *,
    points: bool = True,
    overwrite: bool = False,
    verbose: bool = False,
) -> None:
    """Write a graph; see `DistributedGraph.to_zarr`."""
    path = Path(path_on_all_machines(path))
    if path.exists():
        _attributes(path)  # another folder is not replaced
        if not overwrite:
            raise FileExistsError(
                f"{path} has a neighbor graph; pass overwrite=True to replace it, or another path"
            )
    kinds = (*_KINDS, "points") if points else _KINDS
    if points and not graph.points:
        raise ValueError("the graph was read without its points; pass points=False")
    with folder_replaced_at_once(path) as folder:
        root = _zarr().open_group(str(folder), mode="w", zarr_format=3)
        for kind in kinds:
            root.create_group(kind)
        write = delayed(_write_part)
        X = graph.points if points else [None] * len(graph.edges)
        parts = zip(graph.edges, graph.order.rows, X, strict=True)
        tasks = [write(str(folder), p, graph.n_neighbors, *part) for p, part in enumerate(parts)]
        widths = compute(tasks, "writing the graph", verbose=verbose)
        for p in range(len(tasks)):
            if not all((folder / kind / str(p) / "zarr.json").exists() for kind in kinds):
                raise FileNotFoundError(
                    f"part {p} was written by a worker that does not see the folder {folder}; name "
                    "a folder that all machines share"
                )
        root.attrs.update(_described(graph) | {"n_features": widths[0]})


def read_graph(path: str | os.PathLike[str]) -> DistributedGraph:
    """Open a graph; see `DistributedGraph.from_zarr`."""
    from manifoldry.neighbors.distributed_graph import DistributedGraph

    path = Path(path_on_all_machines(path))
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; pass the store that to_zarr wrote")
    about = _attributes(path)
    bounds, counts = np.array(about["bounds"]), np.array(about["counts"])
    n, k, d = int(bounds[-1]), about["n_neighbors"], about["n_features"]
    edges, rows, points = delayed(_read_edges), delayed(_read_rows), delayed(_read)
    where, sizes = str(path), [int(stop - start) for start, stop in pairwise(bounds)]
    return DistributedGraph(
        edges=[edges(where, p, (size, k), n) for p, size in enumerate(sizes)],
        points=[points(where, "points", p, (size, d), "f") for p, size in enumerate(sizes) if d],
        order=RowOrder([rows(where, p, size, n) for p, size in enumerate(sizes)], bounds, counts),
        n_neighbors=k,
        recall=about["recall"],
        search=about["search"],
        metric=about["metric"],
        names=None if about["names"] is None else np.array(about["names"], dtype=object),
    )


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError(
            "Zarr stores need the package zarr; install the extra: pip install 'manifoldry[dask]'"
        ) from None
    return zarr


def _described(graph: DistributedGraph) -> dict[str, Any]:
    names = graph.names
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "n_neighbors": int(graph.n_neighbors),
        "metric": str(graph.metric),
        "recall": float(graph.recall),
        "search": str(graph.search),
        "bounds": [int(bound) for bound in graph.order.bounds],
        "counts": [int(count) for count in graph.order.counts],
        "names": None if names is None else [str(name) for name in names],
    }


def _write_part(
    folder: str, part: int, k: int, edges: Matrix, rows: IntArray, X: Array | None
) -> int:
    """Write the arrays of a part; returned is the number of features, 0 without points."""
    root = _zarr().open_group(folder, mode="r+", zarr_format=3)
    shape = edges.shape[0], k
    arrays = {
        "neighbors": np.asarray(edges.indices, dtype=np.int64).reshape(shape),
        "distances": np.asarray(edges.data, dtype=np.float64).reshape(shape),
        "rows": np.asarray(rows, dtype=np.int64),
    }
    if X is not None:
        arrays["points"] = X
    for kind, values in arrays.items():
        root[kind].create_array(str(part), data=np.ascontiguousarray(values))
    return 0 if X is None else int(X.shape[1])


def _attributes(path: Path) -> dict[str, Any]:
    """The checked attributes of a store."""
    try:
        about = dict(_zarr().open_group(str(path), mode="r", zarr_format=3).attrs)
    except (OSError, ValueError, KeyError, TypeError):
        about = {}
    if about.get("format") != _FORMAT:
        raise ValueError(f"{path} is not a neighbor graph that to_zarr wrote; name another path")
    if about.get("version") != _VERSION:
        raise ValueError(
            f"{path} has version {about.get('version')!r}, but this manifoldry reads {_VERSION}; "
            "upgrade manifoldry, or build the graph again"
        )
    wrong = [name for name, valid in _VALID.items() if not valid(about.get(name))]
    if not wrong and about["bounds"][-1] != sum(about["counts"]):
        wrong = ["bounds"]
    if wrong:
        raise ValueError(
            f"{wrong[0]} of {path} is {about.get(wrong[0])!r}, which to_zarr does not write; build "
            "the graph again"
        )
    return about


def _read(folder: str, kind: str, part: int, shape: tuple[int, ...], dtypes: str) -> Any:
    """An array of numbers of the declared shape."""
    array = _zarr().open_array(f"{folder}/{kind}/{part}", mode="r", zarr_format=3)
    check_codecs(array, f"{kind} of part {part} of {folder}")
    if array.shape != shape or array.dtype.kind not in dtypes:
        raise ValueError(
            f"{kind} of part {part} of {folder} have shape {array.shape} and dtype {array.dtype}, "
            f"not shape {shape} of {'integers' if dtypes == 'i' else 'floats'}; build the graph "
            "again"
        )
    return np.asarray(array[...])


def _read_rows(folder: str, part: int, size: int, n: int) -> IntArray:
    rows = _read(folder, "rows", part, (size,), "i")
    _check_below(rows, n, f"rows of part {part} of {folder}")
    return rows


def _read_edges(folder: str, part: int, shape: tuple[int, int], n: int) -> Matrix:
    positions = _read(folder, "neighbors", part, shape, "i")
    distances = _read(folder, "distances", part, shape, "f")
    _check_below(positions, n, f"neighbors of part {part} of {folder}")
    if not (np.isfinite(distances) & (distances >= 0)).all():
        raise ValueError(
            f"distances of part {part} of {folder} are not finite and positive; build the graph "
            "again"
        )
    ends = np.arange(shape[0] + 1) * shape[1]
    entries = distances.ravel(), positions.ravel(), ends
    return sparse.csr_array(entries, shape=(shape[0], n))


def _check_below(values: IntArray, n: int, what: str) -> None:
    """Raise ValueError if an index is out of range; compiled loops rely on them."""
    if values.size and not 0 <= values.min() <= values.max() < n:
        raise ValueError(f"{what} are not between 0 and {n - 1}; build the graph again")
