"""Undo the whitening of eigenvector maps: give them the lengths of the data's own edges."""

import numpy as np

from manifoldry._typing import Array, IntArray
from manifoldry._validation import power_of_two_scale
from manifoldry.neighbors.graph import NeighborGraph

_TORN = 6.0  # steps this many times the median length belong to misplaced points
_REWEIGHTINGS = 10  # towards least absolute errors, which outliers do not sway
_NEAREST = 5  # longer chords cut across the curvature and shrink the map


def metric_fit(Y: Array, graph: NeighborGraph, rows: IntArray) -> Array:
    """The linear map A (n_components, n_components) that gives edges their length in the data.

    Minimises Σ |‖A(yᵢ − yⱼ)‖²/d²ᵢⱼ − 1| over the nearest edges among `rows` by reweighted least
    squares in P = AᵀA, whose negative eigenvalues, where noise makes some, are set to zero.
    Afterwards the map is turned to its principal axes, the longest first.
    """
    i, j, lengths = _short_edges(graph, rows)
    if len(lengths) == 0:
        return np.zeros((Y.shape[1], Y.shape[1]))  # all points of this piece are one point
    unit = power_of_two_scale(lengths)
    steps = (Y[i] - Y[j]) / (lengths / unit)[:, None]
    P = _form(steps, _unremarkable(steps))
    for _ in range(_REWEIGHTINGS):
        excess = np.abs(np.einsum("el,lm,em->e", steps, P, steps) - 1)
        P = _form(steps, 1 / np.maximum(excess, 0.05))
    values, vectors = np.linalg.eigh(P)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return root @ _principal_axes(Y[rows] @ root) * unit


def _form(steps: Array, weights: Array) -> Array:
    """The symmetric P that makes weighted steps·P·steps nearest to one."""
    L = steps.shape[1]
    a, b = np.triu_indices(L)
    design = steps[:, a] * steps[:, b] * np.where(a == b, 1.0, 2.0)
    root = np.sqrt(weights)
    entries = np.linalg.lstsq(design * root[:, None], root, rcond=None)[0]
    P = np.zeros((L, L))
    P[a, b] = P[b, a] = entries
    return P


def _unremarkable(steps: Array) -> Array:
    """Weight one for steps of ordinary size; a few torn edges would decide a plain fit alone."""
    typical = np.median(np.abs(steps), axis=0)
    size = np.abs(steps) / np.where(typical > 0, typical, np.inf)
    return (size.max(axis=1) < _TORN).astype(float)


def _short_edges(graph: NeighborGraph, rows: IntArray) -> tuple[IntArray, IntArray, Array]:
    rank = np.arange(len(graph.indices)) - np.repeat(graph.indptr[:-1], np.diff(graph.indptr))
    inside = np.zeros(graph.n_query, dtype=bool)
    inside[rows] = True
    keep = (rank < _NEAREST) & (graph.distances > 0) & inside[graph.rows]
    return graph.rows[keep], graph.indices[keep], graph.distances[keep]


def _principal_axes(Y: Array) -> Array:
    """Rotation to principal axes, signs as eigenvectors have them."""
    centered = Y - Y.mean(axis=0)
    V = np.linalg.svd(centered, full_matrices=False)[2].T
    turned = centered @ V
    largest = turned[np.abs(turned).argmax(axis=0), np.arange(turned.shape[1])]
    return V * np.where(largest < 0, -1.0, 1.0)
