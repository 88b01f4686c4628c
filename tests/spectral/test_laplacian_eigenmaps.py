"""See docs/mathematics.md: Laplacian eigenmaps, Equivalent kernels, Mean squared error."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh, subspace_angles
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from manifoldry import LaplacianEigenmaps, NeighborGraph
from manifoldry.affinity import Binary, Gaussian, SelfTuning
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.exceptions import (
    DegenerateSpectrumWarning,
    DisconnectedGraphWarning,
    ExtensionWarning,
)

NORMALIZATIONS = ["rw", "sym", "none"]
every_normalization = pytest.mark.parametrize("normalization", NORMALIZATIONS)


def strip(n=300, sides=(3.2, 1.0), seed=0):
    return np.random.default_rng(seed).uniform(size=(n, 2)) * sides


def given(k=2, **params):
    return LaplacianEigenmaps(k, affinity="precomputed", **params)


def path(n):
    return np.eye(n, k=1) + np.eye(n, k=-1)


def laplacian(W):
    W = W.toarray() if sparse.issparse(W) else W
    return np.diag(W.sum(axis=1)) - W, W.sum(axis=1)


@pytest.fixture
def weights():
    """A connected graph of random weights without symmetry."""
    rng = np.random.default_rng(4)
    W = rng.uniform(size=(25, 25)) * (rng.uniform(size=(25, 25)) < 0.2)
    return np.maximum(W, W.T) * (1 - np.eye(25)) + path(25) * 0.3


@every_normalization
def test_agrees_with_a_dense_generalized_solver(weights, normalization):
    L, degree = laplacian(weights)
    mass = np.eye(25) if normalization == "none" else np.diag(degree)
    values, F = eigh(L, mass)
    model = given(4, normalization=normalization).fit(weights)
    assert np.allclose(model.eigenvalues_, values[1:5])
    expected = F[:, 1:5] * (np.sqrt(degree)[:, None] if normalization == "sym" else 1)
    assert np.allclose(np.abs(model.embedding_), np.abs(expected), atol=1e-9)


@every_normalization
def test_rayleigh_quotients_and_constraints(normalization):
    model = LaplacianEigenmaps(3, normalization=normalization).fit(strip())
    L, degree = laplacian(model.affinity_)
    Y = model.embedding_
    F = Y / np.sqrt(degree)[:, None] if normalization == "sym" else Y
    mass = np.ones(300) if normalization == "none" else degree
    assert np.allclose(F.T @ (mass[:, None] * F), np.eye(3), atol=1e-10)
    assert np.allclose(F.T @ mass, 0, atol=1e-10)
    assert np.allclose(np.diag(F.T @ L @ F), model.eigenvalues_)
    assert np.allclose(L @ F, mass[:, None] * F * model.eigenvalues_, atol=1e-9)


def test_the_three_normalizations_are_related():
    rw, sym = (LaplacianEigenmaps(3, normalization=n).fit(strip()) for n in ("rw", "sym"))
    degree = np.asarray(rw.affinity_.sum(axis=1)).ravel()
    aligned = rw.embedding_ * np.sqrt(degree)[:, None]
    assert np.allclose(np.abs(aligned), np.abs(sym.embedding_), atol=1e-9)
    assert np.allclose(rw.eigenvalues_, sym.eigenvalues_)
    # On a graph whose degrees are all d, "none" is "rw" with λ·d and f·√d.
    ring = path(20) + np.eye(20, k=19) + np.eye(20, k=-19)
    with pytest.warns(DegenerateSpectrumWarning, match="repeated beyond the last"):
        given(1).fit(ring)
    rw, none = (given(4, normalization=n).fit(ring) for n in ("rw", "none"))
    assert np.allclose(none.eigenvalues_, 2 * rw.eigenvalues_)
    assert subspace_angles(none.embedding_, rw.embedding_).max() < 1e-7
    assert np.allclose(np.square(none.embedding_).sum(), 2 * np.square(rw.embedding_).sum())


@every_normalization
def test_loss_is_the_objective(normalization):
    model = LaplacianEigenmaps(2, normalization=normalization).fit(strip(40))
    W, Y = model.affinity_.toarray(), model.embedding_
    root = np.sqrt(W.sum(axis=1))
    F = Y / root[:, None] if normalization == "sym" else Y
    objective = sum(W[i, j] * np.square(F[i] - F[j]).sum() for i in range(40) for j in range(40))
    assert np.isclose(model.loss_, objective)


def test_no_other_coordinates_have_a_smaller_objective():
    model = LaplacianEigenmaps(2).fit(strip(60))
    L, degree = laplacian(model.affinity_)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        F = model.embedding_ + size * rng.normal(size=(60, 2))
        F -= (degree @ F) / degree.sum()
        R = np.linalg.cholesky(F.T @ (degree[:, None] * F)).T
        F = F @ np.linalg.inv(R)  # feasible again
        assert 2 * np.trace(F.T @ L @ F) > model.loss_


@pytest.mark.parametrize("n", [5, 24])
def test_path_graph_has_cosines(n):
    """Eigenvalues 2 − 2cos(πk/n), vectors cos(πk(i − ½)/n)."""
    model = given(3, normalization="none").fit(path(n))
    i, k = np.arange(1, n + 1), np.arange(1, 4)
    assert np.allclose(model.eigenvalues_, 2 - 2 * np.cos(np.pi * k / n))
    cosines = np.cos(np.pi * np.outer(i - 0.5, k) / n)
    cosines /= np.linalg.norm(cosines, axis=0)
    assert np.allclose(np.abs(model.embedding_), np.abs(cosines), atol=1e-10)


def test_complete_graph():
    """All nontrivial eigenvalues are n/(n − 1), of which a warning informs."""
    with pytest.warns(DegenerateSpectrumWarning, match=r"eigenvalue 1\.125 is repeated"):
        model = given().fit(1 - np.eye(9))
    assert np.allclose(model.eigenvalues_, 9 / 8)
    assert not model.gaps_.any()  # the coordinates are not determined
    with pytest.warns(ExtensionWarning, match=r"coordinates 0, 1 oscillate.*fewer components"):
        placed = model.transform(np.ones((1, 9)))
    assert np.allclose(placed, model.embedding_.mean(axis=0))


@pytest.mark.parametrize("ratio", [2.4, 3.4])
def test_a_strip_shows_its_length_before_its_width(ratio):
    """Neumann eigenfunctions of a strip: the first ⌊L1/L2⌋ coordinates depend on x1 only."""
    grid = np.stack(np.meshgrid(np.arange(int(12 * ratio)), np.arange(12)), -1).reshape(-1, 2)
    model = LaplacianEigenmaps(int(ratio) + 1, radius=1.01, affinity="binary").fit(grid)
    sides = grid.max(axis=0) + 1
    for k, f in enumerate(model.embedding_.T, 1):
        along = [f[grid[:, 0] == x] for x in range(sides[0])]
        within = np.mean([np.var(column) for column in along]) / np.var(f)
        if k <= int(ratio):
            assert within < 0.05
            cosine = np.cos(np.pi * k * (grid[:, 0] + 0.5) / sides[0])
            assert abs(np.corrcoef(f, cosine)[0, 1]) > 0.99
        else:
            assert within > 0.9
            assert abs(np.corrcoef(f, np.cos(np.pi * (grid[:, 1] + 0.5) / sides[1]))[0, 1]) > 0.99


def test_eigenvalues_of_a_strip_are_those_of_neumann():
    """(k1/L1)² + (k2/L2)² in ratios, for the five-point Laplacian of a grid."""
    grid = np.stack(np.meshgrid(np.arange(30), np.arange(11)), -1).reshape(-1, 2)
    model = LaplacianEigenmaps(5, radius=1.01, affinity="binary", normalization="none").fit(grid)
    modes = [(a, b) for a in range(8) for b in range(8) if a or b]
    exact = [4 - 2 * np.cos(np.pi * a / 30) - 2 * np.cos(np.pi * b / 11) for a, b in modes]
    assert np.allclose(model.eigenvalues_, np.sort(exact)[:5])


@every_normalization
def test_the_extension_solves_the_eigenvalue_equation(normalization):
    """(1 − λ) d(x) f(x) = Σ w(x, j) f(j), with w by its definition."""
    X, new = strip(200), strip(12, seed=1)
    model = LaplacianEigenmaps(2, n_neighbors=8, gamma=20.0, normalization=normalization).fit(X)
    D, reach = cdist(new, X), np.sort(cdist(X, X), axis=1)[:, 8]
    k_th = np.sort(D, axis=1)[:, [7]]
    W = np.exp(-20 * D**2) * ((k_th >= D) | (reach >= D))
    d, Y = W.sum(axis=1), model.embedding_
    train = np.asarray(model.affinity_.sum(axis=1)).ravel()
    if normalization == "rw":
        expected = (W @ Y) / d[:, None] / (1 - model.eigenvalues_)
    elif normalization == "sym":
        F = Y / np.sqrt(train)[:, None]
        expected = (W @ F) / np.sqrt(d)[:, None] / (1 - model.eigenvalues_)
    else:
        expected = (W @ Y) / (d[:, None] - model.eigenvalues_)
    assert np.allclose(model.transform(new), expected, atol=1e-10)


def test_rows_of_the_equivalent_kernel_at_training_points():
    """They are D^-½ W D^-½ with eigenvalues 1 − λ (docs/mathematics.md, Equivalent kernels)."""
    X = strip(80)
    model = LaplacianEigenmaps(2, normalization="sym").fit(X)
    W = model.affinity_.toarray()
    root = np.sqrt(W.sum(axis=1))
    K = model.extension_.rows(X).toarray()
    assert np.allclose(K, W / np.outer(root, root), atol=1e-12)
    assert np.allclose(K @ model.embedding_, model.embedding_ * (1 - model.eigenvalues_))


def test_training_loss_identity():
    """docs/mathematics.md, Mean squared error, with the trivial pair among those kept."""
    X = strip(60)
    model = LaplacianEigenmaps(3, normalization="sym").fit(X)
    K = model.extension_.rows(X).toarray()
    degree = model.affinity_.sum(axis=1)
    trivial = np.sqrt(degree / degree.sum())
    kept = np.outer(trivial, trivial)
    kept = kept + (model.embedding_ * (1 - model.eigenvalues_)) @ model.embedding_.T
    values = np.sort(np.linalg.eigvalsh(K))[::-1]
    assert np.isclose(np.square(K - kept).mean(), np.square(values[4:]).sum() / 60**2)


def test_weights_of_the_graph():
    X = strip(50)
    D = cdist(X, X)
    np.fill_diagonal(D, np.inf)
    near = np.sort(D, axis=1)[:, [5]] >= D
    np.fill_diagonal(D, 0)
    either = near | near.T
    model = LaplacianEigenmaps(n_neighbors=6, gamma=3.0).fit(X)
    assert np.allclose(model.affinity_.toarray(), np.exp(-3 * D**2) * either)
    assert not model.affinity_.diagonal().any()
    binary = LaplacianEigenmaps(n_neighbors=6, affinity="binary").fit(X)
    assert np.array_equal(binary.affinity_.toarray(), either.astype(float))
    radius = LaplacianEigenmaps(radius=0.6, affinity="binary").fit(X)
    assert np.array_equal(radius.affinity_.toarray(), ((D <= 0.6) & (D > 0)).astype(float))
    reach = np.sort(np.where(D == 0, np.inf, D), axis=1)[:, 5]
    gaussian = LaplacianEigenmaps(n_neighbors=6, affinity="gaussian").fit(X)
    assert np.allclose(
        gaussian.affinity_.toarray(), np.exp(-(D**2) / np.median(reach) ** 2) * either
    )
    default = LaplacianEigenmaps(n_neighbors=6).fit(X)
    scales = np.outer(
        reach, reach
    )  # of six neighbors, fewer than seven, the farthest sets the width
    assert np.allclose(default.affinity_.toarray(), np.exp(-(D**2) / scales) * either)


def test_the_default_keeps_outliers_on_the_map():
    """With one bandwidth for all points an outlier is disconnected, with a local one not."""
    X = strip(200)
    X = np.vstack([X, X.max(axis=0) + 2.0, X.min(axis=0) - 2.0])
    model = LaplacianEigenmaps(n_neighbors=8).fit(X)
    assert (model.component_labels_ == 0).all()
    with pytest.warns(DisconnectedGraphWarning, match="affinity, but not the neighbor graph"):
        LaplacianEigenmaps(n_neighbors=8, affinity="gaussian").fit(X)


def test_affinity_objects():
    X = strip(60)
    for named, affinity in [
        ({"affinity": "gaussian", "gamma": 2.0}, Gaussian(gamma=2.0)),
        ({"affinity": "binary"}, Binary()),
        ({"affinity": "self_tuning"}, SelfTuning()),
    ]:
        assert np.array_equal(
            LaplacianEigenmaps(affinity=affinity).fit(X).embedding_,
            LaplacianEigenmaps(**named).fit(X).embedding_,
        )


def test_metrics():
    X = np.random.default_rng(0).uniform(0.1, 1, size=(60, 4))
    for metric in ("cityblock", "cosine", "chebyshev"):
        named = LaplacianEigenmaps(metric=metric).fit(X)
        D = cdist(X, X, metric)
        distances = LaplacianEigenmaps(metric="precomputed").fit((D + D.T) / 2 * (1 - np.eye(60)))
        assert subspace_angles(named.embedding_, distances.embedding_).max() < 1e-6
        new = X[:5] + 0.01
        placed = distances.transform(cdist(new, X, metric))
        assert np.allclose(np.abs(named.transform(new)), np.abs(placed), atol=1e-6)


def test_dimension_hint_on_clean_data():
    t = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    ring = np.column_stack([np.cos(t), np.sin(t)])
    # Eigenvalues of a ring come in pairs k², so the first pair has the largest gap.
    assert LaplacianEigenmaps(2, n_neighbors=4, affinity="binary").fit(ring).dimension_hint_ == 2
    line = np.linspace(0, 1, 100)[:, None]
    assert LaplacianEigenmaps(1, n_neighbors=4, affinity="binary").fit(line).dimension_hint_ == 1


def test_unrolls_a_spiral():
    t = np.sqrt(np.linspace(3**2, 12**2, 300))  # about equal steps along the spiral
    spiral = np.column_stack([t * np.cos(t), t * np.sin(t)])
    model = LaplacianEigenmaps(1, n_neighbors=6).fit(spiral)
    first = model.embedding_[:, 0]
    assert (np.diff(first) > 0).all() or (np.diff(first) < 0).all()
    back = model.inverse_transform(model.embedding_)
    assert np.linalg.norm(back - spiral, axis=1).mean() < 0.2
    between = np.column_stack([(t + 0.01) * np.cos(t + 0.01), (t + 0.01) * np.sin(t + 0.01)])
    order = np.argsort(model.transform(between)[:, 0])
    assert np.abs(np.diff(t[order])).max() < 1.0


class TestGivenGraph:
    X = strip(120)

    @pytest.mark.parametrize("params", [{}, {"affinity": "self_tuning"}, {"normalization": "sym"}])
    def test_gives_what_the_data_give(self, params):
        graph = NeighborGraph.build(self.X, n_neighbors=9)
        on_graph = LaplacianEigenmaps(**params).fit(graph)
        on_data = LaplacianEigenmaps(n_neighbors=9, **params).fit(self.X)
        assert np.array_equal(on_graph.embedding_, on_data.embedding_)
        new = self.X[:6] + 0.02
        assert np.array_equal(on_graph.transform(new), on_data.transform(new))
        Z = on_data.embedding_[:6]
        assert np.array_equal(on_graph.inverse_transform(Z), on_data.inverse_transform(Z))
        assert on_graph.n_features_in_ == 2
        assert on_graph.extension_error(self.X) < 1e-12

    def test_is_cut_to_fewer_neighbors(self):
        graph = NeighborGraph.build(self.X, n_neighbors=15)
        for k in (5, 9, 15):
            on_graph = LaplacianEigenmaps(n_neighbors=k).fit(graph)
            on_data = LaplacianEigenmaps(n_neighbors=k).fit(self.X)
            assert np.array_equal(on_graph.embedding_, on_data.embedding_)
            new = self.X[:6] + 0.02
            assert np.array_equal(on_graph.transform(new), on_data.transform(new))
        assert graph.n_neighbors == 15

    @pytest.mark.parametrize(
        ("params", "error", "match"),
        [
            ({"n_neighbors": 16}, ValueError, "n_neighbors=16 cannot be cut from .* 15 neighbors"),
            ({"n_neighbors": 0}, ValueError, "n_neighbors=0 must be at least 1"),
            ({"n_neighbors": "all"}, TypeError, "n_neighbors='all' must be a whole number"),
            ({"radius": 0.3}, ValueError, "radius=0.3 differs from radius=None.*was built"),
            ({"affinity": "precomputed"}, TypeError, "matrix of weights, not a NeighborGraph"),
        ],
    )
    def test_that_does_not_fit(self, params, error, match):
        graph = NeighborGraph.build(self.X, n_neighbors=15)
        with pytest.raises(error, match=match):
            LaplacianEigenmaps(**params).fit(graph)

    def test_of_a_radius(self):
        graph = NeighborGraph.build(self.X, radius=0.4)
        on_data = LaplacianEigenmaps(radius=0.4).fit(self.X)
        for params in ({}, {"radius": 0.4}):
            on_graph = LaplacianEigenmaps(**params).fit(graph)
            assert np.array_equal(on_graph.embedding_, on_data.embedding_)
        with pytest.raises(ValueError, match="cannot be cut from a graph built with a radius"):
            LaplacianEigenmaps(n_neighbors=5).fit(graph)

    def test_of_single_precision(self):
        X = self.X.astype(np.float32)
        on_graph = LaplacianEigenmaps().fit(NeighborGraph.build(X, n_neighbors=9))
        on_data = LaplacianEigenmaps(n_neighbors=9).fit(X)
        assert on_graph.embedding_.dtype == np.float32
        assert np.array_equal(on_graph.embedding_, on_data.embedding_)

    def test_of_new_points(self):
        graph = NeighborGraph.build(self.X, n_neighbors=5)
        own, _ = graph.query(self.X[:7] + 0.01)
        with pytest.raises(ValueError, match="7 query points and 120 reference points"):
            LaplacianEigenmaps().fit(own)
        with pytest.raises(TypeError, match="transform takes data, not a NeighborGraph"):
            LaplacianEigenmaps().fit(graph).transform(graph)

    def test_of_precomputed_distances(self):
        D = cdist(self.X, self.X)
        graph = NeighborGraph.build(D, n_neighbors=9, metric="precomputed")
        on_graph = LaplacianEigenmaps(metric="precomputed").fit(graph)
        on_data = LaplacianEigenmaps(n_neighbors=9).fit(self.X)
        assert np.allclose(np.abs(on_graph.embedding_), np.abs(on_data.embedding_), atol=1e-9)
        new = self.X[:6] + 0.02
        placed = on_graph.transform(cdist(new, self.X))
        assert np.allclose(np.abs(placed), np.abs(on_data.transform(new)), atol=1e-9)

    def test_after_data_with_names(self):
        pd = pytest.importorskip("pandas", reason="frames are pandas' own")
        model = LaplacianEigenmaps().fit(pd.DataFrame(self.X, columns=["a", "b"]))
        model.fit(NeighborGraph.build(self.X))
        assert not hasattr(model, "feature_names_in_")


def test_sparse_neighbor_graph_of_distances():
    """A sparse matrix of distances, as scikit-learn's transformers make it."""
    from sklearn.neighbors import kneighbors_graph

    X = strip(100)
    G = kneighbors_graph(X, 12, mode="distance")
    model = LaplacianEigenmaps(n_neighbors=8, metric="precomputed").fit(G)
    reference = LaplacianEigenmaps(n_neighbors=8).fit(X)
    assert np.allclose(np.abs(model.embedding_), np.abs(reference.embedding_), atol=1e-9)


def test_the_name_arpack_means_shift_invert_here():
    model = LaplacianEigenmaps(eigen_solver="arpack").fit(strip())
    assert model.solver_.startswith("ShiftInvertLanczos")


def test_a_graph_in_another_metric_is_refused():
    graph = NeighborGraph.build(strip(40), 5)
    with pytest.raises(ValueError, match=r"metric='cosine' differs from metric='euclidean'"):
        LaplacianEigenmaps(metric="cosine").fit(graph)


def test_dense_weights_are_solved_as_a_dense_matrix():
    X = strip(300)
    model = LaplacianEigenmaps(n_neighbors=299, gamma=2.0).fit(X)
    W = np.exp(-2.0 * cdist(X, X) ** 2)
    np.fill_diagonal(W, 0)
    d = W.sum(axis=1)
    expected = eigh(np.diag(d) - W, np.diag(d), subset_by_index=(1, 2))[1]
    assert subspace_angles(expected, model.embedding_).max() < 1e-8


@pytest.mark.parametrize("copies", [8, 10])
def test_more_duplicates_than_neighbors_of_the_local_width(copies):
    """The local width counts each distance once."""
    X, coordinates = make_strip(300, random_state=0)
    model = LaplacianEigenmaps(n_neighbors=12 * copies).fit(np.repeat(X, copies, axis=0))
    for copy in range(copies):
        along = spearmanr(model.embedding_[copy::copies, 0], coordinates[:, 0])[0]
        assert abs(along) > 0.99


def test_more_coordinates_than_fit_into_memory(free_memory):
    X, _ = make_swiss_roll(300, random_state=0)
    free_memory(400_000)
    with pytest.raises(MemoryError, match="computing 200 coordinates of 300 points"):
        LaplacianEigenmaps(200).fit(X)
