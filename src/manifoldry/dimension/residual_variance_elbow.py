"""Dimension from the residual variance of Isomap."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import pdist

from manifoldry.affinity.dense import GivenKernel
from manifoldry.dimension.distinct_points import DimensionInput
from manifoldry.dimension.result import Dimension
from manifoldry.eigen import resolve_solver
from manifoldry.extension.from_distances import gower_kernel
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.graph import DEFAULT_NEIGHBORS, NeighborGraph
from manifoldry.spectral.gram import KernelGram
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import Estimate
from manifoldry.util.typing import Array, IntArray, RandomState
from manifoldry.util.validation import power_of_two_scale


@dataclass(frozen=True)
class ElbowOptions:
    """Options of :func:`residual_variance_elbow`.

    Parameters
    ----------
    coordinates : int
        Default number of coordinates.
    landmarks : int
        Largest number of landmarks.
    max_edge_visits : float
        Largest number of edges that all shortest-path searches together visit; with very many
        points it reduces the number of landmarks.
    parts, part_size : int
        Largest number of subsets of the landmarks for the interval, and smallest size of a subset.
    negligible : float
        Residual variance that counts as zero.
    min_curvature : float
        Smallest second difference of the logarithm at a clear elbow.

    See Also
    --------
    residual_variance_elbow : uses them.

    Examples
    --------
    >>> from manifoldry.datasets import make_s_curve
    >>> from manifoldry.dimension import ElbowOptions, residual_variance_elbow
    >>> X = make_s_curve(400, random_state=0).X
    >>> round(residual_variance_elbow(X, options=ElbowOptions(landmarks=100)))  # faster than 500
    2
    """

    coordinates: int = 20
    landmarks: int = 500
    max_edge_visits: float = 2e8
    parts: int = 10
    part_size: int = 20
    negligible: float = 1e-4
    min_curvature: float = 0.25


DEFAULT_OPTIONS = ElbowOptions()


class Scaling(NamedTuple):
    """Classical MDS of the geodesic distances between landmarks."""

    residuals: Array  # (k,), 1 − ρ² with 1, 2, ... coordinates
    eigenvalues: Array  # (k,), in arbitrary units


def residual_variance_elbow(
    X: Any,
    *,
    n_neighbors: int | None = None,
    n_components: int | None = None,
    random_state: RandomState = None,
    options: ElbowOptions = DEFAULT_OPTIONS,
) -> Dimension:
    """Estimate the dimension as the elbow of Isomap's residual variance (Tenenbaum et al. 2000).

    The residual variance is 1 − ρ², where ρ is the correlation between geodesic distances and
    distances in the embedding with 1, 2, ... coordinates. It decreases until the embedding has as
    many coordinates as the manifold, and hardly afterwards. The elbow is the largest second
    difference of its logarithm. Unlike PCA, it counts a rolled-up sheet as two-dimensional. A
    closed surface, which cannot be flattened, counts as one dimension more, and shortcuts between
    layers invalidate the estimate. If the graph is disconnected, only its largest connected
    component is used.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_samples, n_features), or NeighborGraph
        The data; duplicate rows count once.
    n_neighbors : int, default=None
        Number of neighbors in the graph of shortest paths; by default 10, or fewer if there are
        fewer points. A graph with duplicates is used with all its neighbors.
    n_components : int, default=None
        Largest number of coordinates; by default 20, or fewer if there are fewer points. The elbow
        is below this number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the landmarks, up to 500 and fewer for very many points; ``None`` is a fixed seed.
    options : ElbowOptions, optional
        Number of landmarks and subsets, and tolerances.

    Returns
    -------
    Dimension
        The interval is the range over ten embeddings of a tenth of the landmarks each, on the same
        graph; with fewer than 40 points it is unbounded.

    See Also
    --------
    manifoldry.metrics.residual_variance : of any embedding.
    manifoldry.Isomap : has the residual variances of its coordinates.
    gram_rank : counts the eigenvalues instead.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import residual_variance_elbow
    >>> int(residual_variance_elbow(make_swiss_roll(800, random_state=0).X).value)
    2
    """
    data = DimensionInput.of(X)
    rng = as_generator(random_state, unset=0)
    graph = _graph(data, n_neighbors)
    members = largest_component(graph, data.first_sample if data.input_graph is not None else None)
    if len(members) < 4:
        raise ValueError(
            f"the largest connected component of the graph has {len(members)} distinct points, but "
            "at least 4 are needed; increase n_neighbors"
        )
    landmarks = _landmarks(members, graph, rng, options)
    k = _resolve_components(n_components, len(landmarks), options.coordinates)
    D = Geodesics.of(graph, landmarks).distances[landmarks]
    whole = classical_scaling(D, k, rng)
    dimension, curvature = elbow(whole.residuals, options.negligible)
    value = Estimate(dimension, *_subset_range(D, k, dimension, rng, options))
    note = _note(whole, curvature >= options.min_curvature, len(members), data.n)
    return Dimension(value, "residual_variance_elbow", note)


def largest_component(graph: NeighborGraph, first_sample: IntArray | None) -> IntArray:
    """Samples of the largest connected component, one for each distinct point."""
    labels = graph.components()[1]
    rows = np.arange(graph.n_query) if first_sample is None else first_sample
    return rows[labels[rows] == np.argmax(np.bincount(labels[rows]))]


def classical_scaling(D: Array, k: int, rng: np.random.Generator) -> Scaling:
    """Classical MDS of the distances `D`, and its residual variances with 1 to k coordinates."""
    unit = power_of_two_scale(D)
    gram = KernelGram.of(GivenKernel(len(D)), gower_kernel(D, unit))
    spectrum = resolve_solver("auto", end="largest").solve(gram.problem, k, rng)
    values = np.maximum(spectrum.values, 0.0)
    Y = spectrum.vectors * np.sqrt(values)
    pairs = np.triu_indices(len(D), 1)
    geodesic = (D / unit)[pairs]
    embedded = np.zeros(len(geodesic))
    residuals = np.ones(k)
    for i in range(k):
        embedded += pdist(Y[:, i : i + 1], "sqeuclidean")
        if embedded.any():
            residuals[i] = max(0.0, 1 - np.corrcoef(geodesic, np.sqrt(embedded))[0, 1] ** 2)
    return Scaling(residuals, values)


def elbow(residuals: Array, negligible: float = DEFAULT_OPTIONS.negligible) -> tuple[int, float]:
    """Number of coordinates with the largest second difference of log(residuals), and its value."""
    logs = np.log(np.maximum(np.append(1.0, residuals), negligible))
    if len(logs) < 3:
        return 1, 0.0
    curvatures = logs[:-2] - 2 * logs[1:-1] + logs[2:]
    best = int(np.argmax(curvatures))
    return best + 1, float(curvatures[best])


def _graph(data: DimensionInput, n_neighbors: int | None) -> NeighborGraph:
    graph = data.graph
    duplicates = graph.n_query > data.n  # they displace other neighbors
    if graph.n_neighbors is None or (duplicates and n_neighbors is None):
        return graph
    k = min(DEFAULT_NEIGHBORS, graph.k)
    if n_neighbors is not None:
        k = data.resolve_neighbors(n_neighbors)
    if k > graph.k:
        return NeighborGraph.build(data.points, k, copy=False)
    return graph.truncate(k)


def _landmarks(
    members: IntArray, graph: NeighborGraph, rng: np.random.Generator, options: ElbowOptions
) -> IntArray:
    affordable = max(4 * options.coordinates, int(options.max_edge_visits / len(graph.indices)))
    count = min(len(members), options.landmarks, affordable)
    if count == len(members):
        return members
    return np.sort(rng.choice(members, count, replace=False))


def _resolve_components(n_components: int | None, n_landmarks: int, default: int) -> int:
    bound = n_landmarks - 1
    if n_components is None:
        return min(default, bound)
    check_count("n_components", n_components, minimum=2)
    if n_components > bound:
        raise ValueError(
            f"n_components={n_components} must be at most {bound}, the number of landmarks minus "
            f"1; pass n_components={bound} or fewer"
        )
    return n_components


def _subset_range(
    D: Array, k: int, dimension: int, rng: np.random.Generator, options: ElbowOptions
) -> tuple[float, float]:
    """Smallest and largest elbow over subsets of the landmarks."""
    count = min(options.parts, len(D) // options.part_size)
    if count < 2:
        return 1.0, np.inf
    found = [dimension]
    for part in np.array_split(rng.permutation(len(D)), count):
        subset = classical_scaling(D[np.ix_(part, part)], min(k, len(part) - 1), rng)
        found.append(elbow(subset.residuals, options.negligible)[0])
    return float(min(found)), float(max(found))


def _note(whole: Scaling, clear: bool, size: int, n: int) -> str:
    listed = ", ".join(f"{value:.2g}" for value in whole.residuals[:6])
    fractions = whole.eigenvalues / whole.eigenvalues.sum()
    count = int((fractions > 0.01).sum())
    note = f"residuals {listed}, ...; {count} eigenvalues above 1 % of their sum"
    if not clear:
        note = "no clear elbow; " + note
    if size < n:
        note += f"; largest connected component only, {size} of {n} points"
    return note
