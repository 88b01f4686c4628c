"""The held-out loss of data-dependent kernels against the published formulas in plain numpy.

Every reference takes two sets of points A and B and the training points X, and does not know
whether a point of A or B is new.
"""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from manifoldry import (
    LLE,
    LTSA,
    MVU,
    TSNE,
    DiffusionMaps,
    HessianLLE,
    Isomap,
    LaplacianEigenmaps,
    NonRedundant,
    SpectralClustering,
    SpectralEmbedding,
)
from manifoldry.affinity import Entropic, Gaussian
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphWarning, ExtensionWarning
from manifoldry.metrics import kernel_loss
from manifoldry.neighbors import NeighborGraph
from manifoldry.neighbors.pruning import without_edges

K_NEIGHBORS = 9
X = make_swiss_roll(120, noise=0.1, random_state=0).X
NEW = make_swiss_roll(50, noise=0.1, random_state=1).X
NOISE = np.random.default_rng(0).normal(size=(300, 4))


def reach(A, X, k=K_NEIGHBORS):
    """Distance to the k-th nearest training point, not counting the point itself."""
    D = cdist(A, X)
    D[D == 0] = np.inf
    return np.sort(D, axis=1)[:, k - 1]


def is_edge(A, B, X):
    """Neighbors: within the reach of one of the two; no self-loops."""
    D = cdist(A, B)
    either = np.maximum.outer(reach(A, X), reach(B, X))
    return (either >= D) & (D > 0)


def gaussian_weights(A, B, X, gamma=0.05):
    return np.exp(-gamma * cdist(A, B) ** 2) * is_edge(A, B, X)


def binary_weights(A, B, X):
    return 1.0 * is_edge(A, B, X)


def self_tuning_weights(A, B, X):
    widths = np.outer(reach(A, X, 7), reach(B, X, 7))
    return np.exp(-(cdist(A, B) ** 2) / widths) * is_edge(A, B, X)


def mutual_weights(A, B, X, gamma=0.05):
    D = cdist(A, B)
    both = np.minimum.outer(reach(A, X), reach(B, X))
    return np.exp(-gamma * D**2) * ((both >= D) & (D > 0))


def all_pairs_weights(A, B, X, gamma=0.05):
    D = cdist(A, B)
    return np.exp(-gamma * D**2) * (D > 0)


def random_walk_weights(A, B, X, gamma=0.05, alpha=0.7):
    """Density normalization of weights with self-transitions of training points."""

    def with_loops(P, Q):
        training = (cdist(P, X) == 0).any(axis=1)
        return gaussian_weights(P, Q, X, gamma) + (cdist(P, Q) == 0) * training[:, None]

    def density(P):
        return np.maximum(with_loops(P, X).sum(axis=1), 1.0)

    return with_loops(A, B) / np.outer(density(A), density(B)) ** alpha


def normalized(weights):
    """K(a, b) = (1/n)·w(a, b)/√(E[w(a, y)]·E[w(b, y)]), the publication's equation."""

    def kernel(A, B, X):
        means = [weights(P, X, X).mean(axis=1) for P in (A, B)]
        return weights(A, B, X) / np.sqrt(np.outer(*means)) / len(X)

    return kernel


def geodesic(A, B, X):
    """min d(a, i) + G(i, j) + d(j, b) over neighbors i of a and j of b, or the edge a–b."""
    G = shortest_path(cdist(X, X) * is_edge(X, X, X), directed=False)
    starts = [np.where(is_edge(P, X, X) | (cdist(P, X) == 0), cdist(P, X), np.inf) for P in (A, B)]
    to_training = (starts[0][:, :, None] + G).min(axis=1)
    D = (to_training[:, None, :] + starts[1]).min(axis=2)
    new = [(cdist(P, X) > 0).all(axis=1) for P in (A, B)]
    direct = is_edge(A, B, X) & np.logical_and.outer(*new)
    D[direct] = np.minimum(D, cdist(A, B))[direct]
    return D


def gower(A, B, X):
    """−½·(d²(a, b) − E[d²(y, b)] − E[d²(a, y)] + E[d²(y, y')])."""
    means = [(geodesic(P, X, X) ** 2).mean(axis=1) for P in (A, B)]
    grand = (geodesic(X, X, X) ** 2).mean()
    return -0.5 * (geodesic(A, B, X) ** 2 - means[0][:, None] - means[1] + grand)


def expected_losses(K, factors, signs, omitted=None):
    """Mean over pairs of different points of (K − Σ ± f·f)², relative to that of K²."""
    pairs = ~np.eye(len(K), dtype=bool)
    rest = K.copy()
    losses = []
    if omitted is not None:
        rest = rest - np.outer(omitted, omitted)
    losses.append((rest[pairs] ** 2).mean())
    for f, sign in zip(factors.T, signs, strict=True):
        rest = rest - sign * np.outer(f, f)
        losses.append((rest[pairs] ** 2).mean())
    return np.array(losses) / (K[pairs] ** 2).mean()


def nystrom(kernel, new, X, n_components):
    """√|ℓ|·v(x) by the publication's formula, and the signs of ℓ, for the leading pairs."""
    values, V = eigh(kernel(X, X, X))
    order = np.argsort(-values)[:n_components]
    values, V = values[order], V[:, order]
    return kernel(new, X, X) @ V / np.sqrt(np.abs(values)), np.sign(values)


LAPLACIAN = {
    "gaussian": (
        LaplacianEigenmaps(3, n_neighbors=K_NEIGHBORS, affinity="gaussian", gamma=0.05),
        gaussian_weights,
    ),
    "sym": (
        LaplacianEigenmaps(
            3, n_neighbors=K_NEIGHBORS, affinity="gaussian", gamma=0.05, normalization="sym"
        ),
        gaussian_weights,
    ),
    "binary": (
        LaplacianEigenmaps(3, n_neighbors=K_NEIGHBORS, affinity="binary"),
        binary_weights,
    ),
    "self-tuning": (LaplacianEigenmaps(3, n_neighbors=K_NEIGHBORS), self_tuning_weights),
    "mutual": (
        LaplacianEigenmaps(
            3, n_neighbors=K_NEIGHBORS, affinity=Gaussian(gamma=0.05, symmetrize="and")
        ),
        mutual_weights,
    ),
    "radius": (
        LaplacianEigenmaps(3, radius=1e3, affinity="gaussian", gamma=0.05),
        all_pairs_weights,
    ),
    "all pairs": (SpectralEmbedding(3, affinity="rbf", gamma=0.05), all_pairs_weights),
    "diffusion maps": (
        DiffusionMaps(3, n_neighbors=K_NEIGHBORS, gamma=0.05, alpha=0.7),
        random_walk_weights,
    ),
    "two steps": (
        DiffusionMaps(3, n_neighbors=K_NEIGHBORS, gamma=0.05, alpha=0.7, t=2),
        random_walk_weights,
    ),
}


@pytest.mark.parametrize("name", LAPLACIAN)
@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.DisconnectedGraphWarning")
def test_losses_of_laplacians_are_the_published_ones(name):
    model, weights = LAPLACIAN[name]
    kernel = normalized(weights)
    model.fit(X)
    factors, signs = nystrom(kernel, NEW, X, 4)  # the first is √degree, which the maps leave out
    K = kernel(NEW, NEW, X)
    expected = expected_losses(K, factors[:, 1:], signs[1:], omitted=factors[:, 0])
    found = kernel_loss(model, NEW)
    np.testing.assert_allclose(found.losses, expected, rtol=1e-7)
    assert found.kernel_rms == pytest.approx(np.sqrt((K[~np.eye(50, dtype=bool)] ** 2).mean()))


@pytest.mark.parametrize("normalize_rows", [True, False])
def test_loss_of_spectral_clustering_counts_the_constant_function(normalize_rows):
    kernel = normalized(self_tuning_weights)
    model = SpectralClustering(3, n_neighbors=K_NEIGHBORS, normalize_rows=normalize_rows).fit(X)
    factors, signs = nystrom(kernel, NEW, X, 3)
    expected = expected_losses(kernel(NEW, NEW, X), factors, signs)
    np.testing.assert_allclose(kernel_loss(model, NEW).losses, expected, rtol=1e-7)


def test_entropic_weights_between_new_points():
    # p(b|a) has the width and the normalizer of a's neighbors among the training points.
    model = LaplacianEigenmaps(2, affinity=Entropic(perplexity=5)).fit(X)
    perplexity, k, m = 5, 15, len(NEW)
    D, near = cdist(NEW, NEW), np.sort(cdist(NEW, X), axis=1)[:, :k]
    P = np.zeros((m, m))
    for a in range(m):
        low, high = 1e-6, 1e6
        for _ in range(200):
            beta = np.sqrt(low * high)
            p = np.exp(-beta * (near[a] ** 2 - near[a, 0] ** 2))
            q = p / p.sum()
            entropy = -(q * np.log(np.maximum(q, 1e-300))).sum()
            low, high = (beta, high) if entropy > np.log(perplexity) else (low, beta)
        # No probability exceeds that of the nearest training point.
        excess = np.maximum(D[a] ** 2 - near[a, 0] ** 2, 0)
        P[a] = np.exp(-beta * excess) / p.sum() * (D[a] <= near[a, -1])
    np.fill_diagonal(P, 0.0)
    W = (P + P.T) / 2
    pairs = model.extension_.kernel_pairs(NEW)
    d = model.extension_.source.rows(NEW)
    degree = d[0].sum(axis=1) * np.exp(d[1])
    np.testing.assert_allclose(pairs.kernel, W / np.sqrt(np.outer(degree, degree)), atol=1e-6)


def test_loss_of_isomap_is_the_published_one():
    few = NEW[:25]
    model = Isomap(3, n_neighbors=K_NEIGHBORS).fit(X)
    factors, signs = nystrom(gower, few, X, 3)
    K = gower(few, few, X)
    found = kernel_loss(model, few)
    np.testing.assert_allclose(found.losses, expected_losses(K, factors, signs), rtol=1e-6)
    assert found.kernel_rms == pytest.approx(np.sqrt((K[~np.eye(25, dtype=bool)] ** 2).mean()))


def test_landmarks_have_the_same_geodesics_between_new_points():
    full = Isomap(2, n_neighbors=K_NEIGHBORS).fit(X).extension_.geodesics.among(NEW)
    some = Isomap(2, n_neighbors=K_NEIGHBORS, n_landmarks=30).fit(X)
    np.testing.assert_allclose(some.extension_.geodesics.among(NEW), full, rtol=1e-12)
    means = (some.extension_.geodesics.from_new(NEW) ** 2).mean(axis=1)
    B = some.extension_.geodesics.distances[some.landmarks_] ** 2
    K = -0.5 * (full**2 - means[:, None] - means + B.mean())
    pairs = ~np.eye(50, dtype=bool)
    assert kernel_loss(some, NEW).kernel_rms == pytest.approx(np.sqrt((K[pairs] ** 2).mean()))


def test_neighboring_new_points_have_a_direct_edge_and_no_third_one_shortens_paths():
    line = np.arange(0.0, 20.0)[:, None] * [1.0, 0.0]
    graph = Isomap(1, n_neighbors=2).fit(line).extension_.geodesics
    above = np.array([[4.5, 0.5], [4.6, 0.5], [30.0, 0.0], [25.0, 0.0]])
    D = graph.among(above)
    assert D[0, 1] == pytest.approx(0.1)  # not up and down over the line
    # 25 is within the reach of 30 (its neighbors are at 19 and 18), so they have an edge;
    # the path from 4.5 to 30 still leads through 19 and not through 25, which is no nearer.
    assert D[2, 3] == pytest.approx(5.0)
    assert D[0, 2] == pytest.approx(np.hypot(0.5, 0.5) + 14 + 11)


def lle_weights(A, X, k, reg=1e-3):
    W = np.zeros((len(A), len(X)))
    for row, a in zip(W, A, strict=True):
        near = np.argsort(((X - a) ** 2).sum(axis=1))
        near = near[((X[near] - a) ** 2).sum(axis=1) > 0][:k]
        C = (X[near] - a) @ (X[near] - a).T
        w = np.linalg.solve(C + reg * np.trace(C) * np.eye(k), np.ones(k))
        row[near] = w / w.sum()
    return W


def test_loss_of_lle_is_that_of_new_and_training_points():
    # K(x, xᵢ) = (μ − 1)·w(x, xᵢ) and K = μI − M; the relative loss does not depend on μ.
    model = LLE(3, n_neighbors=K_NEIGHBORS).fit(X)
    W = lle_weights(X, X, K_NEIGHBORS)
    M = (np.eye(len(X)) - W).T @ (np.eye(len(X)) - W)
    V = eigh(M)[1][:, :4]
    for mu in (5.0, 1e4):
        K = (mu - 1) * lle_weights(NEW, X, K_NEIGHBORS)
        left = [((K - K @ V[:, :d] @ V[:, :d].T) ** 2).mean() for d in range(1, 5)]
        expected = np.array(left) / (K**2).mean()
        np.testing.assert_allclose(kernel_loss(model, NEW).losses, expected, rtol=1e-5)


MODELS = {
    "isomap": Isomap(3, n_neighbors=K_NEIGHBORS),
    "landmarks": Isomap(3, n_neighbors=K_NEIGHBORS, n_landmarks=40),
    "lle": LLE(3, n_neighbors=K_NEIGHBORS),
    "laplacian": LaplacianEigenmaps(3, n_neighbors=K_NEIGHBORS),
    "entropic": LaplacianEigenmaps(3, affinity=Entropic(perplexity=5)),
    "diffusion": DiffusionMaps(3, n_neighbors=K_NEIGHBORS),
    "clustering": SpectralClustering(3, n_neighbors=K_NEIGHBORS),
    "all pairs": SpectralEmbedding(3, affinity="rbf", gamma=0.05),
}
each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_training_rows_have_the_training_kernel(name):
    model = MODELS[name].fit(X)
    K = np.asarray(sparse.csr_array(model.equivalent_kernel(X)).toarray())
    some = [3, 40, 77]
    mixed = np.vstack([X[some], NEW])
    pairs = model.extension_.kernel_pairs(mixed)
    found = pairs.kernel * pairs.unit**2
    columns = some if pairs.symmetric else slice(None)
    if name == "landmarks":  # the kernel of the library has one column per landmark
        D = Isomap(3, n_neighbors=K_NEIGHBORS).fit(X).extension_.geodesics.distances
        to = D[:, model.landmarks_] ** 2
        means = to.mean(axis=1)
        K = -0.5 * (D**2 - means[:, None] - means + to[model.landmarks_].mean())
    scale = np.abs(K).max()
    np.testing.assert_allclose(
        found[:3, : 3 if pairs.symmetric else None],
        K[np.ix_(some, np.arange(len(X)))][:, columns],
        atol=1e-10 * scale,
    )
    if name != "landmarks":
        with_new = np.asarray(sparse.csr_array(model.equivalent_kernel(NEW)).toarray())
        np.testing.assert_allclose(
            found[3:, : 3 if pairs.symmetric else None], with_new[:, columns], atol=1e-10 * scale
        )


@each_model
def test_pairs_are_symmetric_and_do_not_depend_on_other_rows(name):
    model = MODELS[name].fit(X)
    mixed = np.vstack([X[[3, 40]], NEW, NEW[:1]])
    whole = model.extension_.kernel_pairs(mixed)
    part = model.extension_.kernel_pairs(mixed[[52, 1, 7]])
    if whole.symmetric:
        size = np.abs(whole.kernel).max()
        np.testing.assert_allclose(whole.kernel, whole.kernel.T, atol=1e-13 * size)
        np.testing.assert_allclose(part.kernel, whole.kernel[np.ix_([52, 1, 7], [52, 1, 7])])
    else:
        np.testing.assert_allclose(part.kernel, whole.kernel[[52, 1, 7]], atol=1e-12)
    np.testing.assert_allclose(part.left, whole.left[[52, 1, 7]], atol=1e-10)
    np.testing.assert_allclose(part.squares, whole.squares[[52, 1, 7]], rtol=1e-7)


@each_model
def test_training_loss_is_that_of_the_leading_eigenvectors(name):
    """Over pairs of different points; with LLE, whose kernel is mostly its diagonal, over all."""
    model = MODELS[name].fit(X)
    pairs = model.extension_.kernel_pairs(X)
    np.testing.assert_allclose(pairs.squares.mean(axis=0), 1.0, rtol=1e-5)
    if name == "landmarks":
        return  # whose eigenvectors are those of the landmarks
    values, V = eigh(sparse.csr_array(model.equivalent_kernel(X)).toarray())
    counted = np.ones((120, 120), bool) if name == "lle" else ~np.eye(120, dtype=bool)
    first = 0 if pairs.omitted is None else 1
    left = []
    for kept in (0, *range(first + 1, first + 4)):
        rest = (V[:, : 120 - kept] * values[: 120 - kept]) @ V[:, : 120 - kept].T
        left.append((rest[counted] ** 2).mean())
    found = kernel_loss(model, X)
    np.testing.assert_allclose(found.losses[1:], np.array(left[1:]) / left[0], rtol=1e-6)
    assert found.kernel_rms**2 == pytest.approx(left[0])


def test_training_loss_of_lle_is_comparable_with_the_held_out_loss():
    model = LLE(4).fit(NOISE[:200])
    training, held_out = (kernel_loss(model, rows).losses for rows in np.split(NOISE, [200]))
    assert (np.diff(training) < 0).all()
    np.testing.assert_allclose(training, held_out, atol=0.01)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("laplacian", 60),
        ("lle", 60),
        ("diffusion", 300),  # heavy tails: the degree of a new point has no weight of its own
        pytest.param("isomap", 60, marks=pytest.mark.slow),
    ],
)
def test_intervals_cover_the_loss_of_many_points(name, size):
    model = MODELS[name].fit(X)

    def draw(n, seed):
        return make_swiss_roll(n, noise=0.1, random_state=seed).X

    truth = np.mean([kernel_loss(model, draw(1000, 1000 + seed)).losses[3] for seed in range(4)])
    found = [kernel_loss(model, draw(size, seed)).losses[3] for seed in range(2, 42)]
    assert np.mean([each.low <= truth <= each.high for each in found]) >= 0.85
    widths = np.mean([each.high - each.low for each in found])
    assert widths < 8 * np.std(found)  # four standard deviations would be ideal


@each_model
def test_formats_and_pickling(name):
    model = MODELS[name].fit(X)
    expected = kernel_loss(model, NEW).losses
    np.testing.assert_array_equal(
        kernel_loss(pickle.loads(pickle.dumps(model)), NEW).losses, expected
    )
    np.testing.assert_allclose(kernel_loss(model, sparse.csr_array(NEW)).losses, expected)
    single = type(model)(**model.get_params()).fit(X.astype(np.float32))
    np.testing.assert_allclose(
        kernel_loss(single, NEW.astype(np.float32)).losses, expected, rtol=2e-2
    )


@each_model
def test_shift_and_scale_do_not_matter(name):
    expected = kernel_loss(MODELS[name].fit(X), NEW)
    if name == "all pairs":
        return  # gamma is in units of the data
    moved = kernel_loss(MODELS[name].fit(1e6 * X + 1e9), 1e6 * NEW + 1e9)
    np.testing.assert_allclose(moved.losses, expected.losses, rtol=1e-4)
    tiny = kernel_loss(MODELS[name].fit(2.0**-400 * X), 2.0**-400 * NEW)
    np.testing.assert_allclose(tiny.losses, expected.losses, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        LTSA(2),
        HessianLLE(2, n_neighbors=12),
        TSNE(2, max_iter=20),
        MVU(2, max_iter=20),
        NonRedundant(Isomap(2)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_methods_without_a_kernel_at_new_points_are_refused(model):
    name = type(model).__name__
    with pytest.raises(TypeError, match=f"{name} has no kernel that is defined at new points"):
        kernel_loss(model.fit(X[:60]), NEW)


def test_a_free_constant_is_refused():
    with pytest.raises(ValueError, match=r"normalization='none'.*'rw' or 'sym'"):
        kernel_loss(LaplacianEigenmaps(2, normalization="none").fit(X), NEW)


def test_precomputed_values_are_refused():
    D = cdist(X, X)
    to_new = cdist(NEW, X)
    cases = [
        (Isomap(2, metric="precomputed"), D, to_new),
        (LaplacianEigenmaps(2, metric="precomputed"), D, to_new),
        (LaplacianEigenmaps(2, affinity="precomputed"), np.exp(-D), np.exp(-to_new)),
    ]
    for model, training, new in cases:
        with pytest.raises(ValueError, match=r"among new points are unknown.*fit it on the data"):
            kernel_loss(model.fit(training), new)


@each_model
def test_bad_rows_are_refused(name):
    model = MODELS[name].fit(X)
    for bad, match in [
        (NEW[:2], "2 rows; kernel_loss needs at least 3"),
        (NEW[:, :2], "features"),
        (np.full((5, 3), np.nan), "NaN"),
        (np.full((5, 3), np.inf), "infinity"),
        (NEW[:0], "minimum of 1"),
    ]:
        with pytest.raises(ValueError, match=match):
            kernel_loss(model, bad)


def test_points_without_neighbors_in_the_radius_are_refused():
    for model in (Isomap(2, radius=8.0), LaplacianEigenmaps(2, radius=8.0)):
        with pytest.raises(ValueError, match="no training point within the radius"):
            kernel_loss(model.fit(X), NEW + 1e3)


FAR = np.vstack([NEW[:20], NEW[20:22] + 1e3])


@pytest.mark.filterwarnings("ignore:2 of 22 rows")
def test_loss_of_far_points_is_the_published_one():
    factors, signs = nystrom(gower, FAR, X, 2)
    expected = expected_losses(gower(FAR, FAR, X), factors, signs)
    found = kernel_loss(Isomap(2, n_neighbors=K_NEIGHBORS).fit(X), FAR)
    np.testing.assert_allclose(found.losses, expected, rtol=1e-5)
    W = lle_weights(X, X, K_NEIGHBORS)
    V = eigh((np.eye(120) - W).T @ (np.eye(120) - W))[1]
    K = lle_weights(FAR, X, K_NEIGHBORS)
    expected = [1 - ((K @ V[:, :d]) ** 2).sum() / (K**2).sum() for d in (1, 2, 3)]
    found = kernel_loss(LLE(2, n_neighbors=K_NEIGHBORS).fit(X), FAR)
    np.testing.assert_allclose(found.losses, expected, rtol=1e-5)


def test_kernel_of_far_points_exceeds_all_others():
    # Their weights with training points are about 1e-88, and the weight between them is 1.
    with pytest.warns(ExtensionWarning, match=r"2 of 22 rows \(20, 21 of X\) have 100%"):
        found = kernel_loss(LaplacianEigenmaps(2, n_neighbors=K_NEIGHBORS).fit(X), FAR)
    np.testing.assert_allclose(found.losses, 1.0)
    W = self_tuning_weights(FAR[20:], X, X).sum(axis=1)
    between = self_tuning_weights(FAR[20:], FAR[20:], X)[0, 1] / np.sqrt(W[0]) / np.sqrt(W[1])
    assert found.kernel_rms == pytest.approx(between * np.sqrt(2 / (22 * 21)))


@pytest.mark.parametrize(
    "model",
    [
        LaplacianEigenmaps(2, affinity="gaussian", gamma=0.05),
        LaplacianEigenmaps(2, affinity="self_tuning"),
        DiffusionMaps(2, gamma=0.05),
    ],
)
def test_rows_between_which_the_kernel_overflows_are_named(model):
    farther = np.vstack([NEW[:20], NEW[20:22] + 1e6])
    with pytest.raises(ValueError, match=r"rows 20 and 21 of X overflows.*; remove rows") as caught:
        kernel_loss(model.fit(X), farther)
    assert "affinity" not in str(caught.value)  # which not all models have
    assert np.isfinite(kernel_loss(model, farther[:20]).losses).all()


@pytest.mark.filterwarnings("error")
def test_two_outliers_do_not_decide_the_loss_silently():
    model = LaplacianEigenmaps(3, gamma=1).fit(NOISE[:200])
    without = kernel_loss(model, NOISE[200:]).losses
    new = np.vstack([NOISE[200:], [[6, 0, 0, 0], [6.05, 0, 0, 0]]])
    message = r"2 of {} rows \(100, 101 of X\) have 100% .* remove these rows"
    with pytest.warns(ExtensionWarning, match=message.format(102)):
        found = kernel_loss(model, new).losses
    for one, other in zip(found, without, strict=True):
        assert one.low <= other <= one.high
    # Numbers of rows are those of X, also if a row before them is not in the subsample.
    with pytest.warns(ExtensionWarning, match=message.format(101)):
        kernel_loss(model, new, max_rows=101, random_state=0)


def test_swapped_arguments_are_refused():
    with pytest.raises(TypeError, match="of type ndarray, not an estimator; pass a fitted"):
        kernel_loss(NEW, MODELS["isomap"].fit(X))


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.DisconnectedGraphWarning")
def test_no_two_rows_are_neighbors():
    spread = X[[0, 40, 80]] * 1.0001
    model = LaplacianEigenmaps(2, n_neighbors=3).fit(X)
    with pytest.raises(ValueError, match=r"zero between all pairs of rows of X.*pass more rows"):
        kernel_loss(model, spread)


def test_repeated_new_rows_are_neighbors_without_a_distance():
    model = LaplacianEigenmaps(2, affinity="binary", n_neighbors=K_NEIGHBORS).fit(X)
    pairs = model.extension_.kernel_pairs(np.vstack([NEW, NEW[:1]]))
    degree = is_edge(NEW[:1], X, X).sum()
    assert pairs.kernel[0, -1] == pytest.approx(1 / degree)


def two_sheets(n, seed):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.uniform(size=(n, 2)), rng.uniform(size=(n // 2, 2)) + 50])


@pytest.mark.parametrize("method", [LaplacianEigenmaps, DiffusionMaps, LLE, Isomap])
def test_components_are_approximated_separately(method):
    """The kernel is zero between components: absolute losses of the components add up."""
    data, new = two_sheets(60, 0), two_sheets(30, 1)
    options = {"gamma": 30.0} if method in (DiffusionMaps, LaplacianEigenmaps) else {}
    model = method(2, n_neighbors=6, disconnected="separate", **options)
    with pytest.warns(DisconnectedGraphWarning):
        both = kernel_loss(model.fit(data), new)
    parts = []
    for training, rows in ((data[:60], new[:30]), (data[60:], new[30:])):
        one = method(2, n_neighbors=6, **options).fit(training)
        found = kernel_loss(one, rows)
        count = len(rows) * (len(rows) - 1)
        unit = 1.0
        if method is LLE:  # pairs with training points; the sum of a row is the free constant
            count = len(rows) * len(training)
            unit = one.equivalent_kernel(rows[:1]).sum()
        parts.append((count * (found.kernel_rms / unit) ** 2, found.losses))
    for d in range(3):
        total = sum(whole * losses[d] for whole, losses in parts)
        expected = total / sum(whole for whole, _ in parts)
        assert both.losses[d] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("model", [LaplacianEigenmaps(2, affinity="binary"), Isomap(2)])
def test_training_rows_keep_edges_that_join_components(model):
    data = two_sheets(60, 0)
    with pytest.warns(DisconnectedGraphWarning, match="joined"):
        model.set_params(n_neighbors=6, disconnected="join").fit(data)
    pairs = model.extension_.kernel_pairs(data)
    K = np.asarray(sparse.csr_array(model.equivalent_kernel(data)).toarray())
    np.testing.assert_allclose(pairs.kernel * pairs.unit**2, K, atol=1e-10 * np.abs(K).max())
    assert K[:60, 60:].any()


def test_rows_that_are_not_embedded_are_left_out_with_a_warning():
    data, new = two_sheets(60, 0), two_sheets(30, 1)
    for method in (LaplacianEigenmaps, LLE, Isomap):
        with pytest.warns(DisconnectedGraphWarning):
            model = method(2, n_neighbors=6, disconnected="largest").fit(data)
        with pytest.warns(ExtensionWarning, match="15 of 45 rows of X .* left out of the loss"):
            found = kernel_loss(model, new)
        alone = kernel_loss(model, new[:30])
        np.testing.assert_array_equal(found.losses, alone.losses)


def test_removed_edges_are_not_reconnected_by_pairs_of_new_points():
    low = np.column_stack([np.linspace(0, 10, 41), np.zeros(41)])
    graph = NeighborGraph.build(np.vstack([low, low + np.array([0.0, 0.6])]), n_neighbors=6)
    crossing = (graph.rows < 41) != (graph.indices < 41)
    cut = without_edges(graph, np.column_stack([graph.rows, graph.indices])[crossing])
    new = np.array([[5.1, 0.1], [5.1, 0.5], [5.3, 0.1]])
    np.testing.assert_array_equal(graph.among(new).matrix().toarray() > 0, 1 - np.eye(3))
    expected = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    np.testing.assert_array_equal(cut.among(new).matrix().toarray() > 0, expected)
