"""New points of the elastic embedding by the kernel of its training affinities."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import cdist
from scipy.special import entr, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits

import manifoldry as mf
from manifoldry.affinity import Entropic, Gaussian, SelfTuning
from manifoldry.datasets import make_s_curve, make_swiss_roll
from manifoldry.exceptions import ExtensionWarning, NoveltyWarning
from manifoldry.metrics import procrustes
from manifoldry.neighbors import NeighborGraph

N, PERPLEXITY, WEIGHT = 120, 8, 100.0


@pytest.fixture(scope="module")
def roll():
    return make_swiss_roll(N + 12, random_state=3).X


def squared(A, B):
    return cdist(A, B, "sqeuclidean")


def bandwidths(X):
    """β and the logarithm of Σ exp(−β·d²) of each point over its 3·perplexity nearest."""
    D = np.sort(squared(X, X), axis=1)[:, 1 : 1 + 3 * PERPLEXITY]

    def surplus(log_beta, t):
        return entr(softmax(-np.exp(log_beta) * t)).sum() - np.log(PERPLEXITY)

    beta = np.exp([brentq(surplus, -20, 20, args=(t - t[0],), xtol=1e-14) for t in D])
    return beta, np.log(np.exp(-beta[:, None] * (D - D[:, :1])).sum(axis=1)), D


def frozen_row(x, X):
    """Logarithms of the affinities of one new point, times n, by loops over the definition."""
    beta, log_total, D = bandwidths(X)
    nearest, radius = D[:, 0], D[:, -1]
    d = squared(x[None], X)[0]
    own = np.argsort(d)[: 3 * PERPLEXITY]
    closeness = 1 / d[own] / (1 / d[own]).sum()
    mine = {
        "width": np.exp(closeness @ np.log(beta[own] ** -0.5)),
        "log_total": closeness @ log_total[own],
        "nearest": closeness @ np.sqrt(nearest[own]),
    }
    w = np.zeros(len(X))
    shortest = np.full(len(X), np.inf)
    shortest[own] = np.maximum(d[own] - mine["nearest"] ** 2, 0) / mine["width"] ** 2
    shortest[own] += mine["log_total"]
    reverse = np.maximum(d - nearest, 0) * beta + log_total
    reverse[d > radius] = np.inf
    lowest = min(shortest.min(), reverse.min())
    w = (np.exp(lowest - shortest) + np.exp(lowest - reverse)) / 2
    return w, -lowest


def least_energy(W, log_scale, repulsion, Y):
    """Smallest value of Σ w⁺d² + λ·w⁻·exp(−d²), divided by the scale, from many starts."""

    def energy(z):
        step = z - Y
        d = (step**2).sum(axis=1)
        R = np.exp(np.minimum(np.log(repulsion) - log_scale - d, 200.0))
        return (W * d).sum() + R.sum(), 2 * ((W - R)[:, None] * step).sum(axis=0)

    center, size = Y.mean(axis=0), np.abs(Y - Y.mean(axis=0)).max()
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    out = size + np.sqrt(max(-log_scale, 1.0))
    starts = [*Y[np.argsort(-W)[:12]], W @ Y / W.sum(), *(center + out * circle)]
    found = [minimize(energy, z, jac=True, method="BFGS", tol=1e-10) for z in starts]
    return min(result.fun for result in found if np.isfinite(result.fun)), energy


@pytest.mark.parametrize("repulsion", ["uniform", "squared_distance"])
@pytest.mark.parametrize("kernel", ["entropic", "gaussian"])
def test_no_search_finds_less_energy_by_the_formula_of_the_document(roll, kernel, repulsion):
    """Points between, beside and far from the data; both constants are those of the training."""
    X = roll[:N]
    one = {"affinity": Gaussian(gamma=0.02)} if kernel == "gaussian" else {"perplexity": PERPLEXITY}
    model = mf.ElasticEmbedding(weight=WEIGHT, repulsion=repulsion, **one).fit(X)
    away = np.array([[30.0, 0, 0], [0, 60.0, 0], [-40.0, 20, 5], [500.0, 0, 0]])
    new = np.vstack([roll[N : N + 4], away])
    D = squared(new, X)
    push = np.full_like(D, 1 / (N * (N - 1)))
    if repulsion != "uniform":
        push = D / squared(X, X).sum()
    placed = model.transform(new)
    for i, z in enumerate(placed):
        if kernel == "gaussian":
            total = np.exp(-0.02 * squared(X, X)).sum() - N
            W, log_scale = np.exp(0.02 * (D[i].min() - D[i])), -0.02 * D[i].min()
            farthest = np.argmax(D[i])  # each point has N − 1 neighbors
            if D[i, farthest] > squared(X[farthest, None], X).max():
                W[farthest] = 0.0
            log_scale += np.log(N / total)
        else:
            W, log_scale = frozen_row(new[i], X)
        best, energy = least_energy(W, log_scale, WEIGHT * N * push[i], model.embedding_)
        assert energy(z)[0] <= best * (1 + 1e-8)
        assert np.abs(energy(z)[1]).max() <= 1e-6 * W.sum() * (1 + np.abs(z).max())


def test_training_rows_return_and_neighbors_are_near_them(roll):
    """The row of a training point is its row of the affinities; only the search adds an error."""
    X = roll[:N]
    model = mf.ElasticEmbedding(weight=WEIGHT, perplexity=PERPLEXITY).fit(X)
    W, log_scale = model.extension_.affinity.rows(X)
    rows = W.toarray() * np.exp(log_scale)[:, None]
    np.testing.assert_allclose(rows, N * model.affinity_.toarray(), atol=1e-12)
    assert model.extension_error(X) < 1e-3
    moved = np.abs(model.transform(X + 1e-7) - model.embedding_).max(axis=1)
    assert moved.max() < 1e-3 * np.abs(model.embedding_).max()


@pytest.mark.parametrize("direction", np.eye(3))
def test_distance_from_the_map_grows_with_the_distance_from_the_data(direction):
    """Normalized rows left a point 500 units away on the rim of the map, at (4.06, −4.39)."""
    X = make_swiss_roll(300, random_state=0).X
    model = mf.ElasticEmbedding(weight=100.0).fit(X)
    new = np.outer([500.0, 5e3, 5e4, 1e6], direction)
    placed = model.transform(new)
    size = np.abs(model.embedding_).max()
    far = np.linalg.norm(placed, axis=1)
    assert far[0] > 10 * size
    np.testing.assert_allclose(far / far[0], [1, 10, 100, 2000], rtol=0.3)
    nearest = model.embedding_[squared(new, X).argmin(axis=1)]
    toward = np.einsum("nd,nd->n", placed / far[:, None], nearest - model.embedding_.mean(axis=0))
    assert (toward > 0).all()


def test_points_farther_than_a_million_widths_say_so(roll):
    model = mf.ElasticEmbedding(weight=WEIGHT).fit(roll[:N])
    with pytest.warns(ExtensionWarning, match="far from the training data"):
        placed = model.transform(np.full((1, 3), 1e100))
    assert np.isfinite(placed).all()


@pytest.mark.parametrize(("weight", "least"), [(100.0, (0.3, 0.7)), (1e4, (0.2, 0.3))])
def test_points_past_the_edge_of_a_sheet_land_past_it(weight, least):
    """Measured as in E5.6; with normalized rows −.1 to .3 at all four distances."""
    sample, edge = make_s_curve(400, random_state=0), 5.0
    seen = sample.coordinates[:, 0] < edge
    model = mf.ElasticEmbedding(
        2, perplexity=20, weight=weight, repulsion="squared_distance", init="spectral"
    ).fit(sample.X[seen])
    near = sample.coordinates[seen][:, 0] > edge - 1
    motion = procrustes(model.embedding_[near], sample.coordinates[seen][near], "affine").alignment
    width = np.linspace(*np.quantile(sample.coordinates[:, 1], [0.15, 0.85]), 20)
    past = []
    for distance in (0.1, 0.2, 0.4, 0.8):
        truth = np.column_stack([np.full(20, edge + distance), width])
        past.append((motion.apply(model.transform(sample.embed(truth)))[:, 0] - edge).mean())
    assert (np.diff(past) > 0).all()
    assert past[0] > 0
    assert past[2] > least[0]
    assert past[3] > least[1]


def test_rows_do_not_depend_on_each_other(roll):
    new = np.vstack([roll[N:], 20 + 3 * roll[N:], 500 + roll[N:]])
    model = mf.ElasticEmbedding(weight=WEIGHT).fit(roll[:N])
    whole = model.transform(new)
    alone = np.vstack([model.transform(x[None]) for x in new])
    np.testing.assert_allclose(alone, whole, rtol=1e-7, atol=1e-7)
    again = pickle.loads(pickle.dumps(model)).transform(new)
    np.testing.assert_array_equal(again, whole)


def test_other_kinds_of_input_agree(roll):
    X, new = roll[:N], np.vstack([roll[N:], [[300.0, 0, 0]]])
    one = {"weight": WEIGHT, "repulsion": "uniform", "init": "spectral"}
    whole = mf.ElasticEmbedding(**one).fit(X)
    expected = whole.transform(new)
    single = mf.ElasticEmbedding(**one).fit(X.astype(np.float32))
    placed = single.transform(new.astype(np.float32))
    assert placed.dtype == np.float32
    size = np.linalg.norm(expected, axis=1)
    assert (np.abs(np.linalg.norm(placed, axis=1) - size) < 0.05 * size + 0.1).all()
    given = mf.ElasticEmbedding(metric="precomputed", **one | {"init": whole.embedding_})
    placed = given.fit(cdist(X, X)).transform(cdist(new, X))
    np.testing.assert_allclose(placed, expected, rtol=1e-3, atol=1e-2)
    given = mf.ElasticEmbedding(**one | {"init": whole.embedding_}).fit(sparse.csr_array(X))
    placed = given.transform(sparse.csr_array(new))
    np.testing.assert_allclose(placed, expected, rtol=1e-3, atol=1e-2)
    given = mf.ElasticEmbedding(**one | {"init": whole.embedding_})
    placed = given.fit(NeighborGraph.build(X, 60)).transform(new)
    np.testing.assert_allclose(placed, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("method", [mf.SNE, mf.SymmetricSNE, mf.TSNE])
def test_far_points_of_the_other_methods_stay_on_the_rim(roll, method):
    """Their rows are probabilities, which depend on differences of squared distances only."""
    X = roll[:N]
    model = method(perplexity=PERPLEXITY, random_state=0).fit(X)
    direction = np.array([1.0, 0, 0])
    placed = model.transform(np.outer([1e2, 1e4, 1e6, 1e7], direction))
    Y = model.embedding_
    size = np.linalg.norm(Y - Y.mean(axis=0), axis=1).max()
    assert (np.linalg.norm(placed - Y.mean(axis=0), axis=1) < 1.3 * size).all()
    # Nearer points have other probabilities, of which the fourth digit may decide for one of two
    # minima of t-SNE.
    np.testing.assert_allclose(placed[3], placed[2], atol=0.02 * size)
    near = np.argsort(-(X @ direction))[:PERPLEXITY]
    spread = np.linalg.norm(Y[near] - Y[near].mean(axis=0), axis=1).max()
    assert np.linalg.norm(placed[2] - Y[near].mean(axis=0)) < spread + 0.3 * size


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(300, 4))


def test_far_points_of_sne_with_one_bandwidth_are_limited(cloud, request):
    """All probability is on one point of the rim: they landed at 86, 449 and 449 in silence."""
    X, new = cloud[:60], np.outer([3.0, 10.0, 1e2, 1e4, 1e8], [1, 0, 0, 0])
    model = mf.SNE(gamma=0.5).fit(X)
    Y = model.embedding_
    size = np.linalg.norm(Y - Y.mean(axis=0), axis=1).max()
    with pytest.warns(ExtensionWarning, match="places of 3 new points are not determined"):
        placed = model.transform(new)
    out = np.linalg.norm(placed - Y.mean(axis=0), axis=1)
    np.testing.assert_allclose(out[2:], 2 * size)
    side = Y[X[:, 0].argmax()] - Y.mean(axis=0)
    assert ((placed[2:] - Y.mean(axis=0)) @ side > 0).all()
    # Where there is a minimizer, the means under both probabilities are equal.
    D = squared(new[:2], X)
    D[[0, 1], D.argmax(axis=1)] = np.inf  # each point has 59 neighbors
    P, Q = softmax(-0.5 * D, axis=1), softmax(-squared(placed[:2], Y), axis=1)
    interpolated = request.config.getoption("--fast-paths")  # sums with relative errors of 1e-5
    np.testing.assert_allclose(P @ Y, Q @ Y, atol=1e-5 if interpolated else 1e-8)


def test_far_points_of_symmetric_sne_with_one_bandwidth_stay_at_their_neighbor(cloud):
    X = cloud[:60]
    model = mf.SymmetricSNE(gamma=0.5).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoveltyWarning)
        placed = model.transform(np.outer([1e2, 1e4, 1e8], [1, 0, 0, 0]))
    nearest = model.embedding_[X[:, 0].argmax()]
    assert (np.linalg.norm(placed - nearest, axis=1) < 1).all()


# ---------------------------------------------------------------- duplicated rows


def test_duplicates_hardly_change_the_places_of_new_points(cloud):
    """Their widths of zero once made "3 rows have no affinity" of these four."""
    new = np.outer([2.0, 2.5, 3.0, 4.0], np.ones(4))
    one = mf.ElasticEmbedding(weight=WEIGHT)
    plain = np.linalg.norm(one.fit(cloud[:200]).transform(new), axis=1)
    copied = one.fit(np.vstack([cloud[:200], np.full((30, 4), 1.5)]))
    out = np.linalg.norm(copied.transform(new), axis=1)
    np.testing.assert_allclose(out, plain, rtol=0.2)
    assert (np.diff(out) > 0).all()
    beside = copied.transform(np.full((1, 4), 1.5 + 1e-6)) - copied.embedding_[-1]
    assert np.linalg.norm(beside) < 1


def test_a_point_whose_neighbors_are_all_duplicates(cloud):
    """X[0] + 3 once landed a million units away."""
    X, settings = cloud[:60], {"weight": WEIGHT, "perplexity": 5}
    new = X[:1] + 3
    plain = np.linalg.norm(mf.ElasticEmbedding(**settings).fit(X).transform(new))
    model = mf.ElasticEmbedding(**settings).fit(np.vstack([X, np.repeat(X[:1], 20, axis=0)]))
    assert np.linalg.norm(model.transform(new)) < 1.5 * plain
    # All 15 neighbors of this one are copies of X[0].
    placed = model.transform(X[:1] + 1e-3) - model.embedding_[0]
    assert np.linalg.norm(placed) < 2


def test_bandwidths_of_new_points_leave_out_those_of_duplicates():
    rows = np.array([[0.0], [1.0], [2.2], [3.7], [5.5], [6.9]])
    X = np.vstack([rows, np.full((4, 1), 9.0)])
    weights = Entropic(perplexity=2).fit(NeighborGraph.build(X, 5))
    known, tied = weights.bandwidths, np.arange(10) >= 6
    assert (known.widths == 0).tolist() == tied.tolist()
    own = NeighborGraph.build(X, 5).query(np.array([[8.0], [9.1]]))[0]
    found = known.interpolated(own, np.array([-1, -1]))
    for i, x in enumerate((8.0, 9.1)):
        near = np.argsort(np.abs(X[:, 0] - x), kind="stable")[:5]
        near = near[~tied[near]]
        w = 1 / (X[near, 0] - x) ** 2
        w /= w.sum()
        assert np.isclose(found.widths[i], np.exp(w @ np.log(known.widths[near])))
        assert np.isclose(found.log_totals[i], w @ known.log_totals[near])
        assert np.isclose(found.nearest[i], w @ known.nearest[near])
    own = NeighborGraph.build(X, 4).query(np.array([[9.1]]))[0]
    found = known.interpolated(own, np.array([-1]))
    assert np.isclose(found.widths[0], np.exp(np.log(known.widths[:6]).mean()))


def test_without_any_bandwidth_all_neighbors_weigh_the_same():
    """Every point of a simplex has all others at one distance."""
    model = mf.ElasticEmbedding(weight=WEIGHT, perplexity=3).fit(np.eye(12))
    W, _ = model.extension_.affinity.rows(np.full((1, 12), 2.0))
    assert W.nnz == 9
    assert (W.data == W.data[0]).all()
    assert np.isfinite(model.transform(np.full((1, 12), 2.0))).all()


# ---------------------------------------------------------------- other affinities


@pytest.mark.parametrize("affinity", ["gaussian", "self_tuning"])
def test_distances_grow_in_proportion_with_other_affinities(cloud, affinity):
    """Self-tuning ones with the point's own scale: 5, 11 and 88."""
    X, new = cloud[:200], np.outer([10.0, 1e2, 1e4], np.ones(4))
    model = mf.ElasticEmbedding(weight=WEIGHT, affinity=affinity).fit(X)
    out = np.linalg.norm(model.transform(new), axis=1)
    np.testing.assert_allclose(out / out[2], new[:, 0] / new[2, 0], rtol=0.35)
    W, log_scale = model.extension_.affinity.rows(X)
    rows = W.toarray() * np.exp(log_scale)[:, None]
    np.testing.assert_allclose(rows, 200 * model.affinity_.toarray(), atol=1e-12)


def test_self_tuning_scales_are_means_of_those_of_the_neighbors(cloud):
    X, x, k = cloud[:80], cloud[100] + 2, 12
    graph = NeighborGraph.build(X, k)
    D, d = cdist(X, X), cdist(x[None], X)[0]
    scales = np.sort(D, axis=1)[:, 7]
    near = np.argsort(d)[:k]
    mine = np.exp(np.average(np.log(scales[near]), weights=1 / d[near] ** 2))
    own = graph.query(x[None])[0]
    frozen = SelfTuning().fit(graph).frozen(own, np.array([-1]))
    expected = d[own.indices] ** 2 / (mine * scales[own.indices])
    np.testing.assert_allclose(frozen.exponents(own, own), expected)


def test_binary_affinities_do_not_vanish_so_that_far_points_move_out_slowly(cloud):
    """Only the squared distances of the repulsion grow: with the logarithm of the distance."""
    model = mf.ElasticEmbedding(weight=WEIGHT, affinity="binary").fit(cloud[:200])
    out = np.linalg.norm(model.transform(np.outer([10.0, 1e2, 1e4, 1e8], np.ones(4))), axis=1)
    size = np.linalg.norm(model.embedding_, axis=1).max()
    assert (np.diff(out) > 0).all()
    assert out[-1] < size + np.sqrt(2 * np.log(1e8))


# ---------------------------------------------------------------- extension="normalized"


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ConvergenceWarning")
def test_normalized_rows_are_neighbor_probabilities(cloud):
    X, new = cloud[:200], cloud[200:] + 0.5
    model = mf.ElasticEmbedding(weight=WEIGHT, extension="normalized").fit(X)
    P, log_scale = model.extension_.affinity.rows(np.vstack([new, [[1e6] * 4]]))
    assert log_scale is None
    np.testing.assert_allclose(P.sum(axis=1), 1)
    perplexities = np.exp(entr(P.toarray()).sum(axis=1))
    np.testing.assert_allclose(perplexities, model.perplexity_, rtol=1e-6)
    Q = mf.SNE(perplexity=20, init="pca", max_iter=1).fit(X).extension_.affinity.rows(new)[0]
    np.testing.assert_allclose(P[:-1].toarray(), Q.toarray(), atol=1e-12)


def test_far_points_stay_near_the_rim_with_normalized_rows(cloud):
    new = np.outer([10.0, 1e2, 1e4, 1e8], np.ones(4))
    both = {}
    for name in ("kernel", "normalized"):
        model = mf.ElasticEmbedding(weight=WEIGHT, repulsion="uniform", extension=name)
        both[name] = np.linalg.norm(model.fit(cloud[:200]).transform(new[:3]), axis=1)
        size = np.linalg.norm(model.embedding_, axis=1).max()
    assert (both["normalized"] < 1.3 * size).all()
    assert both["kernel"][2] > 1000 * size


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_names_of_the_extension(cloud):
    X, new = cloud[:100], cloud[100:110]
    make = partial(mf.ElasticEmbedding, weight=WEIGHT, init="pca", max_iter=20)
    default, kernel, rows = (make(extension=name).fit(X) for name in (None, "kernel", "normalized"))
    np.testing.assert_array_equal(kernel.transform(new), default.transform(new))
    np.testing.assert_array_equal(rows.embedding_, default.embedding_)
    assert np.abs(rows.transform(new) - default.transform(new)).max() > 0.01
    np.testing.assert_array_equal(rows.transform(X), rows.embedding_)
    again = pickle.loads(pickle.dumps(clone(rows).fit(X)))
    np.testing.assert_array_equal(again.transform(new), rows.transform(new))
    match = "extension='probability' must be None, 'kernel', 'normalized' or a regressor"
    with pytest.raises(TypeError, match=match):
        make(extension="probability").fit(X)
    for other in (mf.SNE, mf.TSNE, mf.UKR, mf.LLE):
        with pytest.raises(TypeError, match="extension='normalized' must be None or a regressor"):
            other(extension="normalized").fit(X)


@pytest.mark.slow
def test_normalized_rows_place_held_out_digits_more_accurately():
    X, y = load_digits(return_X_y=True)
    right = {}
    for name in ("kernel", "normalized"):
        model = mf.ElasticEmbedding(weight=WEIGHT, extension=name).fit(X[:800])
        nearest = squared(model.transform(X[800:1200]), model.embedding_).argmin(axis=1)
        right[name] = (y[:800][nearest] == y[800:1200]).mean()
    assert right["normalized"] > right["kernel"] + 0.01
