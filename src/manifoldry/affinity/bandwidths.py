"""A Gaussian bandwidth for every point of a graph, and the weights that follow from it."""

from dataclasses import dataclass

import numpy as np

from manifoldry.affinity.perplexity import solve
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array, IntArray
from manifoldry.util.validation import row_blocks, split_by_label

# Distances that differ by no more than this share are equal but for rounding.
_TIED = 8 * float(np.finfo(float).eps)
# Squared distances that are nothing, or without end, beside one that matters.
_NOTHING, _EVERYTHING = 1e-300, 1e300
_BLOCK = 2**16  # numbers that fit the cache: four times as fast as large blocks


@dataclass(frozen=True, eq=False)
class Bandwidths:
    """Conditional probabilities exp(−(d² − nearest²)/width²)/total of each point's neighbours."""

    nearest: Array
    """Distance to the nearest neighbour: with it taken off, nothing underflows or cancels."""
    widths: Array
    """1/√β; zero where only the nearest count, infinite where all neighbours count the same."""
    log_totals: Array

    @classmethod
    def of(cls, graph: NeighborGraph, perplexity: float) -> "Bandwidths":
        """Bandwidths at which the neighbours of every point have the `perplexity`.

        Points with no more neighbours than that give all of them the same probability, and so do
        points with that many neighbours or more at the nearest distance, to those: no bandwidth
        comes nearer to the perplexity.
        """
        n = graph.n_query
        out = cls(np.zeros(n), np.full(n, np.inf), np.zeros(n))
        # Rows of equal length make a matrix without padding, so none depends on the others.
        by_count = split_by_label(np.diff(graph.indptr)) if n else []
        blocks = [
            rows[block]
            for k, rows in enumerate(by_count)
            for block in row_blocks(len(rows), k, _BLOCK)
            if k > 0
        ]
        parts = map_threads(lambda rows: _settle(_lengths(graph, rows), perplexity), blocks)
        for rows, part in zip(blocks, parts, strict=True):
            out.nearest[rows], out.widths[rows], out.log_totals[rows] = part
        return out

    def exponents(self, distances: Array, points: IntArray) -> Array:
        """−log probability that each of `points` gives to something at its distance.

        Nearer than the nearest neighbour counts as nearest: the totals do not know of such a
        point, and without it in them its probability could be any number above one.
        """
        out = np.empty(len(distances))
        for block in row_blocks(len(distances), 1, _BLOCK):
            out[block] = self._exponents(distances[block], points[block])
        return out

    def _exponents(self, distances: Array, points: IntArray) -> Array:
        nearest, width = self.nearest[points], self.widths[points]
        beyond = _beyond(distances, nearest)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            squared = beyond / width * ((distances + nearest) / width)
        return np.where(beyond == 0, 0.0, squared) + self.log_totals[points]


def _lengths(graph: NeighborGraph, rows: IntArray) -> Array:
    """Distances of rows with the same number of edges, (len(rows), k), ascending."""
    first = graph.indptr[rows][:, None]
    k = int(graph.indptr[rows[0] + 1] - graph.indptr[rows[0]])
    return np.asarray(graph.distances[first + np.arange(k)], dtype=np.float64)


def _settle(D: Array, perplexity: float) -> tuple[Array, Array, Array]:
    """Nearest distance, width and logarithm of the total, for every row of distances."""
    k, nearest = D.shape[1], D[:, 0].copy()
    t, unit = _relative_squares(D, min(k, int(np.ceil(perplexity))) - 1)
    ties = (t == 0).sum(axis=1)
    tied = ties >= perplexity
    widths, log_totals = np.where(tied, 0.0, np.inf), np.log(np.where(tied, ties, k))
    rest = np.flatnonzero(~tied)
    if k > perplexity and len(rest):
        t, log_precision = t[rest], solve(t[rest], perplexity).log_precision
        widths[rest] = unit[rest] * np.exp(-log_precision / 2)
        log_totals[rest] = np.log(np.exp(-np.exp(log_precision)[:, None] * t).sum(axis=1))
    return nearest, widths, log_totals


def _relative_squares(D: Array, rank: int) -> tuple[Array, Array]:
    """(d² − nearest²)/unit², and the unit that makes it one for the neighbour of this rank.

    The bandwidth is of that unit's size, so that neither data of any scale, nor neighbours of
    many scales, leave the range of numbers where it matters.
    """
    nearest = D[:, :1]
    beyond, both = _beyond(D, nearest), D + nearest
    across = beyond[:, rank, None] > 0  # else as many as the perplexity are tied
    near, far = (np.where(across, part[:, rank, None], 1.0) for part in (beyond, both))
    with np.errstate(over="ignore"):
        t = np.minimum(beyond / near * (both / far), _EVERYTHING)
    t[t < _NOTHING] = 0.0
    return t, (np.sqrt(near) * np.sqrt(far))[:, 0]


def _beyond(distances: Array, nearest: Array) -> Array:
    """By how much distances exceed the nearest one; not at all where that is but rounding."""
    beyond = distances - nearest
    beyond *= beyond > _TIED * nearest
    return beyond
