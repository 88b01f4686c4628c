"""Short circuits: detection (E4.10), no false positives, and removal."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits

from manifoldry import LLE, LTSA, MVU, HessianLLE, Isomap, LaplacianEigenmaps, NeighborGraph
from manifoldry.datasets import make_ring, make_s_curve, make_strip, make_swiss_roll
from manifoldry.exceptions import ConvergenceWarning, ShortCircuitWarning
from manifoldry.metrics import procrustes
from manifoldry.neighbors import ShortCircuitOptions, ShortCircuits, find_short_circuits
from manifoldry.neighbors.crossing_groups import GroupCriteria
from manifoldry.neighbors.crossings import CrossingSearch
from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.semidefinite import EdgeConstraint

ESTIMATORS = [Isomap, LaplacianEigenmaps, LLE, HessianLLE, LTSA]


def stray_roll(n, seed, offsets=((0.5, 0.0),)):
    """A roll with outliers in a gap at relative (across, along) offsets, and its coordinates."""
    X, coordinates = make_swiss_roll(n, random_state=seed)
    arc, height = coordinates.T
    middle = np.argsort(np.abs(height - np.median(height)))[: n // 5]
    D = cdist(X[middle], X[middle])
    D[np.abs(arc[middle][:, None] - arc[middle][None]) < 25] = np.inf
    i, j = middle[list(np.unravel_index(np.argmin(D), D.shape))]
    stray = [X[i] + across * (X[j] - X[i]) + [0, along, 0] for across, along in offsets]
    return np.vstack([X, stray]), coordinates


def horseshoe(ends=0.2):
    angle = np.linspace(ends, 2 * np.pi - ends, 200)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def crosses(edges, coordinates):
    """Whether the arc lengths of the ends differ by far more than the length of an edge."""
    arc = coordinates[:, 0]
    return np.abs(arc[edges[:, 0]] - arc[edges[:, 1]]) > 20


# ── detection ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    "offsets",
    [
        [(0.5, 0.0)],
        [(0.5, 0.0), (0.5, 1.0)],
        [(0.5, -1.0), (0.5, 0.0), (0.5, 1.0)],
        [(1 / 3, 0.0), (2 / 3, 0.0)],
        [(0.25, 0.0), (0.5, 0.0), (0.75, 0.0)],
    ],
    ids=["one", "two", "three", "chain of two", "chain of three"],
)
def test_outliers_in_a_gap_are_found(seed, offsets):
    X, _ = stray_roll(800, seed, offsets)
    found = find_short_circuits(X, 10)
    assert len(found) > 0
    assert (found.edges >= 800).any(axis=1).all()
    assert found.changed > 0.1


@pytest.mark.parametrize("limit", [3.0, 8.0, np.inf])
def test_compiled_paths_equal_those_of_scipy(limit):
    """Lengths of paths and numbers of steps between the ends of edges that the graph lacks."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(600, 5)), 50 + rng.normal(size=(20, 5)), np.zeros((4, 5))])
    edges = EdgeList.of(NeighborGraph.build(X, 9))
    kept = rng.uniform(size=len(edges.ends)) < 0.6
    rows, rest = np.flatnonzero(~kept), edges.matrix(kept)
    compiled = replace(edges, compile_above=0)
    expected = edges.path_lengths(rows, rest, limit)
    assert np.isfinite(expected).any()
    assert np.allclose(compiled.path_lengths(rows, rest, limit), expected, rtol=1e-12)
    i, j = edges.ends[rows].T
    steps = dijkstra(rest, indices=i, unweighted=True)[np.arange(len(rows)), j]
    for most in (2, 3, 4):
        found = compiled.not_within_steps(rows, rest, most, work=np.inf)
        assert np.array_equal(found, rows[steps > most])


def test_compiled_parts_and_matrices_equal_those_of_scipy():
    rng = np.random.default_rng(0)
    edges = EdgeList.of(NeighborGraph.build(rng.normal(size=(300, 3)), 5))
    kept, weights = rng.uniform(size=(2, len(edges.ends)))
    kept = kept < 0.2
    compiled = replace(edges, compile_above=0)
    expected = edges.matrix(kept, weights)
    found = compiled.matrix(kept, weights)
    assert np.array_equal(found.toarray(), expected.toarray())
    assert np.array_equal(found.indptr, expected.indptr)
    labels, expected = (
        np.unique(some.parts(kept), return_inverse=True)[1] for some in (compiled, edges)
    )
    assert 10 < labels.max() < 299
    assert np.array_equal(labels, expected)


def test_a_sample_of_the_candidates_finds_the_same_edges():
    """Candidates that are not part of a sample are examined if the sample has short circuits."""
    X, _ = make_swiss_roll(800, noise=0.5, random_state=11)
    graph = NeighborGraph.build(X, 40)
    everything, sampled = (
        ShortCircuits.of(graph, ShortCircuitOptions(search=CrossingSearch(max_sampled=most)))
        for most in (10**9, 20)
    )
    assert len(everything) > 100
    assert np.array_equal(sampled.edges, everything.edges)


@pytest.mark.parametrize(("n", "k"), [(800, 20), (2000, 45)])
def test_few_short_circuits_in_a_large_group_are_found(n, k):
    """Most candidates of a graph of many neighbors are no short circuits, but as long as those."""
    X, _ = make_swiss_roll(n, random_state=11)
    graph = NeighborGraph.build(X, k)
    options = ShortCircuitOptions(search=CrossingSearch(large_group=100))
    found, expected = ShortCircuits.of(graph, options), ShortCircuits.of(graph)
    assert len(expected) > 20
    assert np.array_equal(found.edges, expected.edges)
    assert found.n_unexamined == expected.n_unexamined


def test_candidates_that_were_not_examined_are_counted(monkeypatch):
    """In many dimensions most edges are candidates: a sample saves work, and the result says so."""
    examined = []
    path_lengths = EdgeList.path_lengths

    def counting(self, rows, *arguments, **options):
        examined[-1] += len(rows)
        return path_lengths(self, rows, *arguments, **options)

    monkeypatch.setattr(EdgeList, "path_lengths", counting)
    graph = NeighborGraph.build(np.random.default_rng(0).normal(size=(1000, 20)), 10)
    results = []
    for large, most in ((10**9, 10**9), (100, 20)):
        examined.append(0)
        search = CrossingSearch(large_group=large, max_sampled=most)
        results.append(ShortCircuits.of(graph, ShortCircuitOptions(search=search)))
    exact, found = results
    assert len(exact) == len(found) == 0
    assert exact.n_unexamined == 0
    assert "sample" not in str(exact)
    assert 500 < found.n_unexamined < len(EdgeList.of(graph).ends)
    assert f"({found.n_unexamined} suspicious edges were judged by a sample of them)" in str(found)
    assert examined[1] < 0.2 * examined[0]


@pytest.mark.parametrize("restored", [0.8, 0.2])
def test_of_a_large_group_with_few_short_circuits_a_part_is_examined(restored):
    counts = []

    class Counting(GroupCriteria):
        def to_restore(self, state, rows, label):
            counts.append(len(rows))
            return np.arange(len(rows)) < restored * len(rows)

    graph = NeighborGraph.build(make_swiss_roll(800, noise=0.5, random_state=11)[0], 40)
    limits = {"large_group": 10**9, "max_sampled": 20, "max_examined": 50, "max_rounds": 1}
    search = CrossingSearch(**limits, criteria=Counting())
    found = ShortCircuits.of(graph, ShortCircuitOptions(search=search))
    assert counts[0] == 20
    assert (counts[1] > 1000) == (restored < 0.5)
    assert (found.n_unexamined > 1000) == (restored > 0.5)


def test_outliers_in_a_gap_of_large_data_are_found():
    """With fewer sources and compiled paths, as more than 50 000 points have."""
    X, _ = stray_roll(4000, 1, [(0.5, 0.0), (0.5, 1.0)])
    found = find_short_circuits(X, 10, options=ShortCircuitOptions(max_paths=1))
    assert len(found.options.sources(len(X))) == 6
    assert len(found) > 0
    assert (found.edges >= 4000).any(axis=1).all()
    assert found.changed > 0.1


@pytest.mark.parametrize(
    "ignoring",
    [
        Isomap(n_landmarks=20, short_circuits="ignore"),
        MVU(
            n_landmarks=10,
            max_iter=5,
            constraint=EdgeConstraint(short_circuits="ignore"),
        ),
    ],
    ids=["Isomap", "MVU"],
)
def test_the_search_can_be_switched_off(ignoring, monkeypatch):
    def fail(*arguments):
        raise AssertionError("the search ran")

    X = np.vstack([horseshoe(), [[1.0, 0.0]]])
    monkeypatch.setattr(ShortCircuits, "of", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ignoring.fit(X)
    searching = clone(ignoring)
    name = "short_circuits" if isinstance(searching, Isomap) else "constraint"
    searching.set_params(**{name: "warn" if isinstance(searching, Isomap) else "equal"})
    with pytest.raises(AssertionError, match="the search ran"):
        searching.fit(X)
    with pytest.raises(ValueError, match="short_circuits='no' must be one of 'warn', 'ignore'"):
        Isomap(short_circuits="no").fit(X)
    with pytest.raises(ValueError, match="short_circuits='no' must be one of 'warn', 'ignore'"):
        EdgeConstraint(short_circuits="no")


def test_thresholds_can_be_passed():
    X, _ = stray_roll(800, 1)
    found = find_short_circuits(X, 10, options=ShortCircuitOptions(max_listed=1))
    assert len(found) > 1
    assert f"and {len(found) - 1} more" in str(found)
    assert len(find_short_circuits(X, 10, options=ShortCircuitOptions(min_changed=1.0))) == 0
    patient = ShortCircuitOptions(search=CrossingSearch(criteria=GroupCriteria(min_detour=50.0)))
    assert len(find_short_circuits(X, 10, options=patient)) == 0


@pytest.mark.parametrize(("noise", "k"), [(0.0, 20), (0.0, 30), (0.0, 60), (0.5, 15), (0.5, 40)])
def test_all_edges_between_layers_are_found(noise, k):
    """From a dozen to thousands of edges across the gap, and no others."""
    X, coordinates = make_swiss_roll(800, noise=noise, random_state=11)
    graph = NeighborGraph.build(X, k)
    true = crosses(EdgeList.of(graph).ends, coordinates).sum()
    found = ShortCircuits.of(graph)
    assert true > 0
    assert crosses(found.edges, coordinates).all()
    assert len(found) > 0.9 * true


@pytest.mark.parametrize("k", [4, 6, 10])
def test_the_point_that_closes_a_horseshoe(k):
    found = find_short_circuits(np.vstack([horseshoe(), [[1.0, 0.0]]]), k)
    assert len(found) > 0
    assert (found.edges == 200).any(axis=1).all()
    assert list(found.points) == [200]
    # Half the circle instead of across the gap.
    assert found.detour.max() > 20


def test_detours_loads_and_effect_equal_their_definitions():
    """Detours and the effect from all shortest paths; loads are fractions of the paths."""
    X, _ = stray_roll(300, 1, [(0.5, 0.0), (0.5, 1.0)])
    graph = NeighborGraph.build(X, 8)
    found = ShortCircuits.of(graph)
    A = graph.matrix().toarray()
    A = np.maximum(A, A.T)
    before = dijkstra(csr_array(A))
    i, j = found.edges.T
    edge = A[i, j].copy()
    A[i, j] = A[j, i] = 0
    after = dijkstra(csr_array(A))
    assert np.allclose(found.detour, after[i, j] / edge)
    pairs = ~np.eye(len(X), dtype=bool)
    changed = (after[pairs] > 1.1 * before[pairs]).mean()
    assert found.changed.low <= changed <= found.changed.high
    assert found.effect() == found.changed
    assert found.effect(0) == 0
    assert (found.load >= 0).all()
    # Each path uses at most one edge, and paths that change use one.
    assert found.load.sum() >= 0.9 * found.changed


def test_most_harmful_first():
    """Edges are sorted by score, and the effect increases with the number of edges."""
    X, _ = stray_roll(800, 1, [(0.5, 0.0), (0.5, 1.0)])
    found = find_short_circuits(X, 10)
    assert (np.diff(found.score) <= 0).all()
    effects = [float(found.effect(m)) for m in range(len(found) + 1)]
    assert (np.diff(effects) >= 0).all()


# ── no false positives ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "k"),
    [
        (make_swiss_roll(800, random_state=11).X, 10),
        (make_swiss_roll(800, hole=True, random_state=11).X, 8),
        (make_swiss_roll(800, noise=0.3, random_state=11).X, 8),
        (make_swiss_roll(2000, random_state=11).X, 20),
        (make_s_curve(500, random_state=11).X, 10),
        (make_strip(500, random_state=11).X, 5),
        (make_ring(500, random_state=11).X, 10),
        (make_ring(500, random_state=11).X, 40),
        (np.random.default_rng(1).exponential(size=(800, 2)), 10),
        (np.random.default_rng(1).standard_t(2, size=(800, 2)), 10),
        (np.random.default_rng(1).normal(size=(500, 50)), 10),
        (np.random.default_rng(1).normal(size=(500, 50)), 40),
        (load_digits().data, 10),
    ],
    ids=[
        "roll",
        "hole",
        "noise",
        "many neighbors",
        "s-curve",
        "strip",
        "ring",
        "ring, many neighbors",
        "density falling off",
        "heavy tails",
        "cloud",
        "cloud, many neighbors",
        "digits",
    ],
)
def test_graphs_without_short_circuits(data, k):
    found = find_short_circuits(data, k)
    assert len(found) == 0
    assert found.changed == 0
    assert "no short circuits" in str(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_circle_is_no_short_circuit(seed):
    """Every detour is long, but its edges are as short as the removed ones."""
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, 200)
    assert len(find_short_circuits(np.column_stack([np.cos(angle), np.sin(angle)]), 6)) == 0


@pytest.mark.parametrize("length", [1, 5])
def test_a_bridge_is_no_short_circuit(length):
    """Two clusters connected by a few points: there is no detour."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 80, 2))
    bridge = np.column_stack([np.linspace(3, 6, length + 2)[1:-1], np.zeros(length)])
    X = np.vstack([first, second + np.array([9, 0]), bridge])
    assert len(find_short_circuits(X, 8)) == 0


# ── the graph without them ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("offsets", [[(0.5, 0.0)], [(0.5, 0.0), (0.5, 1.0), (0.5, 2.0)]])
def test_isomap_of_the_pruned_graph_is_accurate(offsets):
    X, coordinates = stray_roll(800, 1, offsets)
    found = find_short_circuits(X, 10)
    with pytest.warns(ShortCircuitWarning, match=r"short circuits: .*80\d.*prune"):
        broken = Isomap(2, n_neighbors=10).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mended = Isomap(2).fit(found.prune())
    assert procrustes(broken.embedding_[:800], coordinates).error > 0.3
    assert procrustes(mended.embedding_[:800], coordinates).error < 0.06
    assert broken.residual_variance_[1] > 3 * mended.residual_variance_[1]
    # New points on both layers are placed on the correct layer.
    new, where = make_swiss_roll(800, random_state=12)
    together = np.vstack([mended.embedding_[:800], mended.transform(new)])
    assert procrustes(together, np.vstack([coordinates, where])).error < 0.06


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_takes_the_pruned_graph(estimator):
    X, _ = stray_roll(400, 1, [(0.5, 0.0), (0.5, 1.0)])
    found = find_short_circuits(X, 9)
    assert len(found) > 0
    model = estimator(2).fit(found.prune())
    assert np.isfinite(model.embedding_).all()
    assert np.allclose(model.transform(X), model.embedding_)
    assert np.isfinite(model.transform(X + 0.01)).all()


def test_pruning_removes_the_edges_and_changes_no_other_path():
    """Other paths are unchanged, and each point has k neighbors, nearest first."""
    X, _ = stray_roll(400, 1, [(0.5, 0.0), (0.5, 1.0)])
    graph = NeighborGraph.build(X, 9)
    found = ShortCircuits.of(graph)
    pruned = found.prune()
    A = graph.matrix().toarray()
    A = np.maximum(A, A.T)
    i, j = found.edges.T
    A[i, j] = A[j, i] = 0
    assert np.allclose(Geodesics.of(pruned).distances, dijkstra(csr_array(A)))
    assert (np.diff(pruned.indptr) == 9).all()
    assert (np.diff(pruned.distances.reshape(-1, 9), axis=1) >= 0).all()
    B = pruned.matrix().toarray()
    assert not B[i, j].any()
    assert not B[j, i].any()
    assert np.array_equal(found.prune(0).indices, graph.indices)
    assert len(ShortCircuits.of(pruned)) == 0


def test_new_points_do_not_reconnect_the_gap():
    X = np.vstack([horseshoe(), [[1.0, 0.0]]])
    pruned = find_short_circuits(X, 6).prune()
    kept = {int(j) for j in pruned.indices[-6:]}
    own, back = pruned.query(np.array([[0.999, 0.0], [0.98, 0.19], [0.98, -0.19]]))
    for row, graph in [(row, graph) for row in range(3) for graph in (own, back)]:
        mine = graph.indices[graph.indptr[row] : graph.indptr[row + 1]]
        sides = {X[j, 1] > 0 for j in mine if j < 200}
        assert len(sides) <= 1
        if row == 0:
            assert set(mine.tolist()) <= kept | {200}


def test_a_pruned_radius_graph():
    X, coordinates = stray_roll(800, 1)
    found = find_short_circuits(X, radius=3.3)
    assert len(found) > 0
    assert (found.edges == 800).any(axis=1).all()
    assert "smaller radius" in found.advice
    pruned = found.prune()
    assert len(pruned.indices) == len(found.graph.indices) - 2 * len(found)
    mended = Isomap(2).fit(pruned)
    assert procrustes(mended.embedding_[:800], coordinates).error < 0.06


# ── text output ──────────────────────────────────────────────────────────────────────────────


def test_text_contains_edges_effect_and_remedy():
    found = find_short_circuits(np.vstack([horseshoe(), [[1.0, 0.0]]]), 6)
    words = str(found)
    assert f"{found.edges[0, 0]}-{found.edges[0, 1]}" in words
    assert f"{found.changed:.0%}" in words
    assert "remove the points that together touch all these edges (200)" in words
    assert "prune" in words


def test_fewer_neighbors_are_recommended_if_they_help():
    X, coordinates = make_swiss_roll(800, random_state=11)
    found = find_short_circuits(X, 30)
    k = found.fewer_neighbors
    assert f"n_neighbors={k} or fewer" in str(found)
    edges = EdgeList.of(NeighborGraph.build(X, k)).ends
    more = EdgeList.of(NeighborGraph.build(X, k + 1)).ends
    assert not crosses(edges, coordinates).any()
    assert crosses(more, coordinates).any()


# ── unusual input ────────────────────────────────────────────────────────────────────────────


def test_a_disconnected_graph():
    """Short circuits exist only within a connected component."""
    X = np.vstack([horseshoe(), [[1.0, 0.0]], horseshoe() + 100])
    found = find_short_circuits(X, 5)
    assert NeighborGraph.build(X, 5).components()[0] == 2
    assert (found.edges == 200).any(axis=1).all()
    assert found.graph.components()[0] == found.prune().components()[0] == 2


@pytest.mark.parametrize("sparse", [False, True])
def test_precomputed_distances(sparse):
    X = np.vstack([horseshoe(), [[1.0, 0.0]]])
    D = cdist(X, X)
    given = NeighborGraph.build(X, 12).matrix() if sparse else D
    expected = find_short_circuits(X, 6)
    found = find_short_circuits(given, 6, metric="precomputed")
    assert np.array_equal(found.edges, expected.edges)
    pruned = found.prune()
    embedding = Isomap(2, metric="precomputed").fit(pruned).embedding_
    assert np.allclose(embedding, Isomap(2).fit(expected.prune()).embedding_)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(scale):
    X = np.vstack([horseshoe(), [[1.0, 0.0]]])
    expected = find_short_circuits(X, 6)
    found = find_short_circuits(scale * X, 6)
    assert np.array_equal(found.edges, expected.edges)
    assert np.allclose(found.detour, expected.detour)
    assert np.allclose(found.prune().distances, scale * expected.prune().distances, atol=0)


@pytest.mark.parametrize("repeats", [2, 5, 12])
def test_copies_of_points(repeats):
    """Duplicates only increase the number of neighbors; edges of length zero are legitimate."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.column_stack([rng.uniform(0, 3, 60), rng.uniform(size=60)]), repeats, axis=0)
    assert len(find_short_circuits(X, 10)) == 0
    horse = np.vstack([np.repeat(horseshoe(), repeats, axis=0), [[1.0, 0.0]]])
    found = find_short_circuits(horse, 4 * repeats)
    assert len(found) > 0
    assert (found.edges == 200 * repeats).any(axis=1).all()
    assert (np.diff(found.prune().indptr) == 4 * repeats).all()


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_tiny_graphs(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    found = find_short_circuits(X)
    assert len(found) == 0
    assert np.array_equal(found.prune().indices, found.graph.indices)
    assert len(find_short_circuits(np.ones((n, 2)))) == 0


def test_a_given_graph_is_truncated():
    X, _ = stray_roll(400, 1)
    graph = NeighborGraph.build(X, 12)
    found = find_short_circuits(graph, 9)
    assert found.graph.n_neighbors == 9
    assert np.array_equal(found.edges, find_short_circuits(X, 9).edges)
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found)


def test_bad_input_is_named():
    X = horseshoe()
    graph = NeighborGraph.build(X, 5)
    with pytest.raises(ValueError, match="7 query points among 200"):
        find_short_circuits(graph.query(X[:7] + 0.001)[0])
    with pytest.raises(ValueError, match="count=-1 must be at least 0"):
        find_short_circuits(graph).prune(-1)
    with pytest.raises(ValueError, match="n_neighbors=300"):
        find_short_circuits(X, 300)
    with pytest.raises(ValueError, match="NaN"):
        find_short_circuits(np.full((10, 2), np.nan))
