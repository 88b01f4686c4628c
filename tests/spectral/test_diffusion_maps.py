"""Diffusion maps: random walk identities, density normalization, choice of the bandwidth."""

import numpy as np
import pytest
from scipy.linalg import eigh_tridiagonal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor, kneighbors_graph

from manifoldry import DiffusionMaps, NeighborGraph, NonRedundant
from manifoldry.affinity import Entropic, SelfTuning
from manifoldry.affinity.growth import fastest_growth
from manifoldry.datasets import make_s_curve
from manifoldry.exceptions import DisconnectedGraphWarning, RankWarning
from manifoldry.metrics import kernel_loss


def circle(angle):
    return np.column_stack([np.cos(angle), np.sin(angle)])


TURN = np.linspace(0, 2 * np.pi, 400, endpoint=False)


def uneven_circle():
    """Six times denser on one side; TURN is 2π times the fraction of points up to each one."""
    return circle(TURN + 0.7 * np.sin(TURN))


def peak(Y):
    """Largest fraction of a coordinate's variance that one point holds."""
    squared = (Y - Y.mean(axis=0)) ** 2
    return (squared.max(axis=0) / squared.sum(axis=0)).max()


def walk(X, gamma, alpha):
    """Transition matrix and stationary distribution, from the definition."""
    K = np.exp(-gamma * cdist(X, X) ** 2)
    q = K.sum(axis=1)
    K = K / np.outer(q, q) ** alpha
    d = K.sum(axis=1)
    return K / d[:, None], d / d.sum()


def explained(Y, truth):
    design = np.column_stack([np.ones(len(Y)), Y])
    residual = truth - design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    return 1 - (residual**2).sum() / ((truth - truth.mean(axis=0)) ** 2).sum()


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_coordinates_are_scaled_eigenfunctions_of_the_walk(alpha):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DiffusionMaps(4, n_neighbors=59, gamma=0.5, alpha=alpha, t=1.5).fit(X)
    P, stationary = walk(X, 0.5, alpha)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    values = model.transition_eigenvalues_
    psi = model.embedding_ / values**1.5
    np.testing.assert_allclose(P @ psi, psi * values, atol=1e-9)
    np.testing.assert_allclose(psi.T @ (stationary[:, None] * psi), np.eye(4), atol=1e-9)


def test_distances_on_the_map_are_diffusion_distances():
    """Σ ℓ^{2t}(ψ_i − ψ_j)² = Σ (P^t_il − P^t_jl)²/π_l over all coordinates."""
    X = np.random.default_rng(0).normal(size=(25, 2))
    model = DiffusionMaps(24, n_neighbors=24, gamma=3.0, t=2).fit(X)
    P, stationary = walk(X, 3.0, 1.0)
    rows = P @ P / np.sqrt(stationary)
    Y = model.embedding_
    np.testing.assert_allclose(cdist(Y, Y), cdist(rows, rows), atol=1e-10)


def test_tiny_data_have_all_their_coordinates():
    """Without self-transitions eigenvalues would be negative and coordinates zero."""
    for n in range(4, 9):
        Y = DiffusionMaps().fit_transform(np.random.default_rng(n).normal(size=(n, 3)))
        assert (Y.std(axis=0) > 1e-3).all()


def test_coordinates_of_vanishing_eigenvalues_are_reported():
    X = np.random.default_rng(0).normal(size=(50, 3))
    with pytest.warns(RankWarning, match=r"2 of n_components=2 .*t=1000000\.0 vanish"):
        DiffusionMaps(t=1e6).fit(X)


@pytest.mark.parametrize("alpha", [0, 1])
def test_given_weights_are_used_with_their_diagonal(alpha):
    X = np.random.default_rng(0).normal(size=(60, 3))
    W = np.exp(-0.5 * cdist(X, X) ** 2)
    given = DiffusionMaps(affinity="precomputed", alpha=alpha).fit(W[:50, :50])
    model = DiffusionMaps(n_neighbors=49, gamma=0.5, alpha=alpha).fit(X[:50])
    np.testing.assert_allclose(given.embedding_, model.embedding_, atol=1e-9)
    np.testing.assert_allclose(given.transform(W[50:, :50]), model.transform(X[50:]), atol=1e-9)
    lazy = DiffusionMaps(affinity="precomputed", alpha=0).fit(W[:50, :50] + 5 * np.eye(50))
    assert lazy.transition_eigenvalues_[0] > given.transition_eigenvalues_[0]
    assert (lazy.affinity_.diagonal() == 6).all()


def test_a_sparse_graph_is_used_as_it_is():
    X = np.random.default_rng(0).normal(size=(60, 3))
    D = kneighbors_graph(X, 6, mode="distance")
    assert DiffusionMaps(metric="precomputed").fit(D).affinity_.nnz <= 60 * 13


def test_more_steps_damp_small_eigenvalues():
    X = uneven_circle()
    once, often = (DiffusionMaps(4, t=t).fit(X) for t in (1, 10))
    ratio = np.linalg.norm(often.embedding_, axis=0) / np.linalg.norm(once.embedding_, axis=0)
    np.testing.assert_allclose(ratio, once.transition_eigenvalues_**9, rtol=1e-6)


def test_outliers_do_not_dominate_the_walk():
    """Two points near each other and far from the rest must not get all of the probability."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:2] = [[30, 0, 0], [31, 0, 0]]
    with pytest.warns(DisconnectedGraphWarning, match=r"affinity.*smaller gamma"):
        Y = DiffusionMaps(affinity="gaussian", disconnected="largest").fit_transform(X)
    assert np.isnan(Y[:2]).all()
    assert np.nanmax(np.abs(Y)) < 10


def uneven_clusters():
    """Five clusters with densities from 1 to 10⁵ and twenty points far from all of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5)) * np.repeat(10 ** -np.linspace(0, 1, 5), 200)[:, None]
    return np.vstack([X + np.repeat(3 * np.eye(5), 200, axis=0), 30 * rng.normal(size=(20, 5))])


def test_no_coordinate_shows_a_single_outlier():
    X = uneven_clusters()
    assert peak(DiffusionMaps(6).fit_transform(X)) < 0.05
    with pytest.warns(DisconnectedGraphWarning):
        former = DiffusionMaps(6, affinity="gaussian").fit_transform(X)
    assert peak(former) > 0.2


@pytest.mark.parametrize("affinity", [None, "gaussian"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_heavy_tails_are_not_refused(seed, affinity):
    """Weights that vanish beside self-transitions separate components, whatever their size."""
    rng = np.random.default_rng(seed)
    for X in (rng.standard_cauchy((500, 3)), rng.lognormal(0, 2, (500, 3))):
        Y = DiffusionMaps(affinity=affinity).fit_transform(X)
        assert np.isfinite(Y).all()
        assert peak(Y) < 0.05 or affinity == "gaussian"


def test_alpha_of_one_removes_the_density_from_kernels_of_fixed_width():
    """Laplace–Beltrami eigenfunctions of the circle are cosine and sine of the angle."""
    X = uneven_circle()
    for affinity in ("gaussian", None):
        found = {
            alpha: explained(DiffusionMaps(affinity=affinity, alpha=alpha).fit_transform(X), X)
            for alpha in (0, 0.5, 1)
        }
        assert found[1] > 0.999
        assert found[0.5] < 0.99
        assert found[0] < 0.95


def test_a_given_alpha_means_gaussian_weights_unless_there_is_an_affinity():
    X = uneven_circle()
    assert DiffusionMaps().fit(X).gamma_ is None
    given = DiffusionMaps(alpha=1).fit(X)
    named = DiffusionMaps(affinity="gaussian").fit(X)
    assert given.gamma_ == named.gamma_
    np.testing.assert_array_equal(given.embedding_, named.embedding_)
    assert DiffusionMaps(affinity="self_tuning", alpha=1).fit(X).gamma_ is None


def test_an_alpha_that_overflows_is_named():
    X = np.random.default_rng(0).normal(size=(60, 3))
    for alpha in (100, 300):  # too large to square, and infinite
        with pytest.raises(ValueError, match=rf"alpha={alpha}\.0 is too large.*alpha=1 or less"):
            DiffusionMaps(alpha=alpha).fit(X)


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize("affinity", ["self_tuning", Entropic()])
def test_with_local_widths_the_data_are_evenly_dense_for_every_alpha(affinity, alpha):
    """Eigenfunctions of the metric p^(2/m)·g, here cosine and sine of the fraction of points."""
    X = uneven_circle()
    Y = DiffusionMaps(n_neighbors=20, affinity=affinity, alpha=alpha).fit_transform(X)
    assert explained(Y, circle(TURN)) > 0.999
    assert explained(Y, X) < 0.95


@pytest.mark.parametrize("alpha", [0, 1])
def test_with_local_widths_a_surface_has_the_metric_in_which_data_are_evenly_dense(alpha):
    """In two dimensions that is p·g, and functions of x alone solve g″ = −λ·p·g, g′ = 0 at ends."""
    rng, log = np.random.default_rng(0), np.log(16)
    x = (np.exp(log * rng.uniform(size=2000)) - 1) / 15  # 16 times denser at 0 than at 1
    f = DiffusionMaps(1, n_neighbors=20, affinity=Entropic(40 / 3), alpha=alpha).fit_transform(
        np.column_stack([x, 0.3 * rng.uniform(size=2000)])
    )
    grid = (np.arange(1000) + 0.5) / 1000
    root = np.sqrt(15 / log / (1 + 15 * grid))  # of the density
    second = np.where((grid < 0.001) | (grid > 0.999), 1.0, 2.0) / root**2
    off = -1 / root[1:] / root[:-1]
    g = eigh_tridiagonal(second, off, select="i", select_range=(1, 1))[1][:, 0] / root
    assert abs(np.corrcoef(f[:, 0], np.interp(x, grid, g))[0, 1]) > 0.999
    for other in (x, np.log1p(15 * x) / log):  # the metric g, and that of a curve
        assert abs(np.corrcoef(f[:, 0], np.cos(np.pi * other))[0, 1]) < 0.99


@pytest.mark.parametrize("affinity", ["self_tuning", "gaussian"])
def test_new_points_on_the_circle(affinity):
    X = uneven_circle()
    truth = X if affinity == "gaussian" else circle(TURN)
    model = DiffusionMaps(affinity=affinity).fit(X[::2])
    everyone = np.vstack([model.embedding_, model.transform(X[1::2])])
    assert explained(everyone, np.vstack([truth[::2], truth[1::2]])) > 0.99
    assert model.extension_error(X[::2]) < 1e-10


def test_the_bandwidth_scales_with_the_data_and_its_slope_is_the_dimension():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 2))
    graph = NeighborGraph.build(X, 599)
    gamma = fastest_growth(graph)
    np.testing.assert_allclose(fastest_growth(NeighborGraph.build(8 * X, 599)), gamma / 64)
    D2 = cdist(X, X) ** 2
    sums = [np.exp(-D2 * gamma / factor).sum() for factor in (0.8, 1.25)]
    slope = np.log(sums[1] / sums[0]) / np.log(1.25 / 0.8)
    assert 1.5 < 2 * slope < 2.1


def test_the_bandwidth_does_not_depend_on_how_edges_are_sampled():
    """Every twentieth edge of a graph with twenty neighbors is always a nearest one."""
    X = np.random.default_rng(0).uniform(size=(4000, 2))
    graph = NeighborGraph.build(X, 20)
    whole = fastest_growth(graph)
    for edges in (4000, 3999, 8000):
        assert 0.6 < fastest_growth(graph, edges) / whole < 1.6


AFFINITIES = ["self_tuning", "gaussian", "binary", Entropic(), SelfTuning(symmetrize="mean")]


@pytest.mark.parametrize("affinity", AFFINITIES, ids=str)
def test_new_points_and_metrics_with_every_affinity(affinity):
    X, truth = make_s_curve(300, random_state=0)
    new, true_new = make_s_curve(50, random_state=1)
    model = DiffusionMaps(affinity=affinity).fit(X)
    assert model.extension_error(X) < 1e-10
    regression = KNeighborsRegressor(5).fit(model.embedding_, truth[:, 0])
    assert r2_score(true_new[:, 0], regression.predict(model.transform(new))) > 0.95
    assert model.score(new) > 0.5
    assert 0 < kernel_loss(model, new).losses[-1] < 1
    assert NonRedundant(clone(model)).fit(X).embedding_.shape == (300, 2)


def test_an_affinity_object_sets_the_number_of_neighbors():
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert DiffusionMaps(affinity=Entropic(20)).fit(X).affinity_.nnz > 100 * 60
    with pytest.raises(ValueError, match=r"gamma=1\.0 is not used by affinity='binary'"):
        DiffusionMaps(affinity="binary", gamma=1.0).fit(X)
    with pytest.raises(ValueError, match="affinity='cosine' must be one of"):
        DiffusionMaps(affinity="cosine").fit(X)


def test_gamma_of_edges_of_all_lengths():
    lengths = np.array([0.0, 1e-160, 1.0, 2.0, 3.5, 5.0, 7.0, 9.5, 1e160])
    with np.errstate(all="raise", under="ignore"):
        gamma = fastest_growth(NeighborGraph.build(lengths[:, None], 4))
    assert 1e-4 < gamma < 1e4
