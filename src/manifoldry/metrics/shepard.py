"""Shepard diagrams: distances in the embedding against distances in the data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.base.docs import shared_docs
from manifoldry.device.arguments import on_device_of_arguments
from manifoldry.metrics.distance_rows import DistanceRows
from manifoldry.metrics.on_device import average_ranks, distances_of_groups, on_device_if_possible
from manifoldry.metrics.pair import DataEmbeddingPair
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import as_generator
from manifoldry.util.estimate import Estimate
from manifoldry.util.threads import map_threads, one_blas_thread
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True, eq=False)
class Shepard:
    """A Shepard diagram: the distances of pairs of points in the data and in the embedding.

    Parameters
    ----------
    data_distances, embedding_distances : arrays of shape (n_pairs,)
        The distances in the data and in the embedding.
    batches : tuple of int
        First indices of independently drawn batches of pairs; empty if all pairs are included.

    See Also
    --------
    shepard : computes it.
    manifoldry.plotting.plot_shepard : draws it.

    Examples
    --------
    >>> from manifoldry import PCA
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, sheet = make_swiss_roll(300, random_state=0)
    >>> diagram = shepard(X, PCA(2).fit(X))  # a projection keeps large distances
    >>> diagram.spearman > 0.8
    True
    >>> shepard(X, sheet).spearman < diagram.spearman  # unrolling changes them
    True
    """

    data_distances: Array
    embedding_distances: Array
    batches: tuple[int, ...] = ()

    @cached_property
    def pearson(self) -> Estimate:
        """Linear correlation of the two distances."""
        return self._estimate(_correlation, within=(-1.0, 1.0))

    @cached_property
    def spearman(self) -> Estimate:
        """Rank correlation of the two distances: 1 if the embedding keeps their order."""
        return self._estimate(
            lambda a, b: _correlation(average_ranks(a), average_ranks(b)), within=(-1.0, 1.0)
        )

    def stress(self, scale: bool = True) -> Estimate:
        """Compute the stress √(Σ(d − δ)² / Σδ²) of distances d in the embedding and δ in the data.

        Parameters
        ----------
        scale : bool, default=True
            Whether the embedding is rescaled to minimize it; see :func:`stress`.

        Returns
        -------
        Estimate
            The stress, with its confidence interval if pairs were sampled.
        """
        if scale:
            data, embedded = self._unitless
            factor = float(embedded @ data) / float(embedded @ embedded)
        else:
            factor = power_of_two_scale(self.embedding_distances) / power_of_two_scale(
                self.data_distances
            )
        return self._estimate(
            lambda a, b: float(np.linalg.norm(factor * b - a) / np.linalg.norm(a)),
            within=(0.0, np.inf),
        )

    def kruskal(self) -> Estimate:
        """Stress relative to the best increasing function of the distances in the data."""
        return self._estimate(_kruskal, within=(0.0, 1.0))

    @cached_property
    def _unitless(self) -> tuple[Array, Array]:
        """Both distances divided by powers of two, so that squares do not overflow."""
        return self.data_distances / power_of_two_scale(
            self.data_distances
        ), self.embedding_distances / power_of_two_scale(self.embedding_distances)

    def _estimate(
        self, statistic: Callable[[Array, Array], float], within: tuple[float, float]
    ) -> Estimate:
        """A statistic of the two distances, with its standard error from batches of pairs."""
        value = statistic(*self._unitless)
        if not self.batches:
            return Estimate(value)
        parts = zip(*(np.split(d, self.batches[1:]) for d in self._unitless), strict=True)
        found = np.array([statistic(a, b) for a, b in parts if a.any()])
        error = float(found.std(ddof=1)) / np.sqrt(len(found))
        return Estimate.with_error(value, error, len(found) - 1, within)


@on_device_of_arguments
@shared_docs
def shepard(
    X: Any, embedding: Any, *, metric: Any = "euclidean", random_state: RandomState = None
) -> Shepard:
    """Compare distances in the embedding with distances in the data.

    The correlations of the result show whether large distances are preserved. Beyond 3000 points,
    pairs are drawn at random: about two million, or 12 000 along a graph.

    Parameters
    ----------
    {compared_data_or_graph}
    {compared_embedding}
    {data_metric}
    {sample_seed}

    Returns
    -------
    Shepard
        The distances, and their correlations and stress.

    See Also
    --------
    stress : one number, the relative error of the distances.
    manifoldry.plotting.plot_shepard : draws the diagram.

    Examples
    --------
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.metrics import shepard
    >>> X, sheet = make_s_curve(300, random_state=0)
    >>> graph = NeighborGraph.build(X, 8)
    >>> bool(shepard(graph, sheet).pearson > 0.99)  # shortest paths stay on the sheet
    True
    >>> bool(shepard(X, sheet).pearson < 0.95)  # straight lines leave them
    True
    """
    return shepard_of(DataEmbeddingPair.of(X, embedding, metric), random_state)


def shepard_of(
    pair: DataEmbeddingPair,
    random_state: RandomState = None,
    *,
    all_pairs_up_to: int = 3000,
    group_size: int = 50,
    n_batches: int = 20,
) -> Shepard:
    """Shepard diagram of a pair of data and embedding.

    For more than `all_pairs_up_to` points, it contains all pairs within random groups of points;
    standard errors are estimated from the differences between batches of groups.
    """
    exact = pair.n <= all_pairs_up_to
    groups = [np.arange(pair.n)] if exact else _groups(pair, group_size, random_state)

    found = _distances_within(groups, pair.data_distances, pair.embedding_distances)
    data, embedded = map(np.concatenate, zip(*found, strict=True))
    if not data.any() or not embedded.any():
        where = "of the embedding" if data.any() else "of X"
        raise ValueError(f"all points {where} coincide, so distances cannot be compared")
    starts = np.cumsum([0, *(len(a) for a, _ in found)])
    chosen = np.linspace(0, len(groups), min(n_batches, len(groups)), endpoint=False).astype(int)
    return Shepard(data, embedded, () if exact else tuple(starts[chosen].tolist()))


def _distances_within(
    groups: list[Any], data: DistanceRows, embedding: DistanceRows
) -> list[tuple[Array, Array]]:
    """Finite distances of the pairs within each group, in data and embedding."""
    upper = np.triu_indices(len(groups[0]), 1)  # all groups have the same size
    data, embedding = on_device_if_possible(data, embedding)

    def finite(D: Array, E: Array) -> tuple[Array, Array]:
        D, E = D[upper], E[upper]
        joined = np.isfinite(D)  # distances between components of a graph are infinite
        return D[joined], E[joined]

    if data.device is not None:
        found = (distances_of_groups(space, np.stack(groups)) for space in (data, embedding))
        return [finite(D, E) for D, E in zip(*found, strict=True)]
    with one_blas_thread():  # products of few points would wait for the others
        return map_threads(lambda g: finite(data.among(g), embedding.among(g)), groups)


def _groups(pair: DataEmbeddingPair, size: int, random_state: RandomState) -> list[IntArray]:
    rng = as_generator(random_state, unset=0)
    return [rng.choice(pair.n, size, False) for _ in range(pair.data_distances.n_groups)]


def _kruskal(data: Array, embedded: Array) -> float:
    from sklearn.isotonic import isotonic_regression

    # Within ties of the data, any order of the embedding's distances is allowed.
    increasing = embedded[np.lexsort((embedded, data))]
    left = np.linalg.norm(increasing - isotonic_regression(increasing))
    return float(left / np.linalg.norm(embedded))


def _correlation(a: Array, b: Array) -> float:
    """Pearson correlation; 0 if one of the arguments is constant."""
    a, b = a - a.mean(), b - b.mean()
    sizes = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / sizes if sizes > 0 else 0.0
