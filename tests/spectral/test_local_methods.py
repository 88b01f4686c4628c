"""LLE and its variants: definitions, agreement with scikit-learn, known manifolds."""

import inspect
import warnings

import numpy as np
import pytest
from scipy.linalg import qr, subspace_angles
from scipy.sparse.csgraph import laplacian
from scipy.stats import ortho_group
from sklearn.datasets import load_digits
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from manifoldry import (
    LLE,
    LTSA,
    HessianLLE,
    ModifiedLLE,
    NeighborGraph,
    NonRedundant,
)
from manifoldry import LocallyLinearEmbedding as OurLLE
from manifoldry.datasets import make_s_curve, make_strip, make_swiss_roll
from manifoldry.exceptions import (
    DisconnectedGraphWarning,
    RankWarning,
    RedundantCoordinateWarning,
    TangentSpaceWarning,
)
from manifoldry.metrics import procrustes
from manifoldry.neighbors.neighborhoods import (
    Neighborhoods,
    alignment_blocks,
    barycentric_weights,
    tangent_bases,
    tangent_misfit,
)
from manifoldry.spectral.modified_lle import noise_ratios, weight_counts
from manifoldry.spectral.tangent_embedder import warn_if_redundant

LOCAL = [LLE, LTSA, HessianLLE, ModifiedLLE]
SHEET = [LTSA, HessianLLE, ModifiedLLE]


def operator(estimator, X):
    return estimator.pose(X).problem.operator


# --- local problems ------------------------------------------------------------------------------


def test_weights_reproduce_a_point_inside_its_neighbors():
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(20, 8, 3))
    weights = barycentric_weights(differences, 1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(np.einsum("nk,nkd->nd", weights, differences), 0, atol=1e-6)


def test_weights_do_not_change_under_rotation_translation_and_scale():
    """E4.4: exact because the regularization is relative to the local trace."""
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(10, 7, 4))
    turned = 37.0 * differences @ ortho_group.rvs(4, random_state=0)
    np.testing.assert_allclose(
        barycentric_weights(turned, 1e-3), barycentric_weights(differences, 1e-3), rtol=1e-8
    )


def test_excluded_neighbors_get_no_weight():
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(5, 6, 3))
    excluded = np.zeros((5, 6), dtype=bool)
    excluded[:, 4:] = True
    weights = barycentric_weights(differences, 1e-3, excluded)
    assert not weights[:, 4:].any()
    np.testing.assert_allclose(weights[:, :4], barycentric_weights(differences[:, :4], 1e-3))


def test_tangent_bases_are_leading_singular_vectors():
    local = np.random.default_rng(0).normal(size=(6, 9, 4)) * [5, 3, 1, 0.1]
    U = tangent_bases(local, 2)
    for block, basis in zip(local, U, strict=True):
        expected = np.linalg.svd(block - block.mean(axis=0))[0][:, :2]
        assert subspace_angles(basis, expected).max() < 1e-6


def test_alignment_blocks_annihilate_affine_functions():
    local = np.random.default_rng(0).normal(size=(5, 8, 2))
    B = alignment_blocks(tangent_bases(local, 2))
    np.testing.assert_allclose(B @ local, 0, atol=1e-12)
    np.testing.assert_allclose(B.sum(axis=2), 0, atol=1e-12)


def test_assembly_equals_a_loop_over_points():
    rng = np.random.default_rng(0)
    X, members = rng.normal(size=(30, 3)), rng.permuted(np.tile(np.arange(30), (30, 1)), axis=1)
    hoods = Neighborhoods(X, members[:, :6])
    M = hoods.align(lambda local: alignment_blocks(tangent_bases(local, 2))).toarray()
    expected = np.zeros((30, 30))
    for row in members[:, :6]:
        U = np.linalg.svd(X[row] - X[row].mean(axis=0))[0][:, :2]
        G = np.column_stack([np.full(6, 6**-0.5), U])
        expected[np.ix_(row, row)] += np.eye(6) - G @ G.T
    np.testing.assert_allclose(M, expected, atol=1e-12)


@pytest.mark.parametrize("method", LOCAL)
def test_operators_are_semidefinite_and_annihilate_constants(method):
    M = operator(method(n_neighbors=12), make_swiss_roll(150, random_state=0).X).toarray()
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    np.testing.assert_allclose(M.sum(axis=1), 0, atol=1e-10)
    assert np.linalg.eigvalsh(M)[0] > -1e-10


# --- several weight vectors ----------------------------------------------------------------------


def published_modified_lle(X, k, d, reg=1e-3):
    """The matrix of Zhang and Wang (2006), with Householder reflections, point by point."""
    n, neighbors = len(X), NeighborGraph.build(X, k).indices.reshape(-1, k)
    spectra = [np.linalg.eigh((X[j] - X[i]) @ (X[j] - X[i]).T) for i, j in enumerate(neighbors)]
    eta = np.median([values[:-d].sum() / values[-d:].sum() for values, _ in spectra])
    M = np.zeros((n, n))
    for i, (values, vectors) in enumerate(spectra):
        counts = np.arange(1, k - d + 1)
        s = max(c for c in counts if c == 1 or values[:c].sum() <= eta * values[c:].sum())
        V, one = vectors[:, :s], np.ones(s)
        alpha = np.linalg.norm(V.sum(axis=0)) / np.sqrt(s)
        h = alpha * one - V.sum(axis=0)
        H = np.eye(s) - 2 * np.outer(h, h) / (h @ h or 1.0)
        C = (X[neighbors[i]] - X[i]) @ (X[neighbors[i]] - X[i]).T
        w = np.linalg.solve(C + reg * np.trace(C) * np.eye(k), np.ones(k))
        W = (1 - alpha) * np.outer(w / w.sum(), one) + V @ H
        np.testing.assert_allclose(W.sum(axis=0), 1)
        weights = np.zeros((n, s))
        weights[neighbors[i]] = W
        weights[i] = -1
        M += weights @ weights.T
    return M


@pytest.mark.parametrize("k", [4, 9])
def test_the_modified_lle_operator_is_the_published_one(k):
    """In ten dimensions, where neighborhoods have different numbers of weight vectors."""
    X = np.random.default_rng(0).normal(size=(80, 10)) * np.linspace(1, 0.1, 10)
    M = operator(ModifiedLLE(2, n_neighbors=k, laplacian_weight=0.0), X).toarray()
    np.testing.assert_allclose(M, published_modified_lle(X, k, 2), atol=1e-9)


def test_flat_data_are_in_the_null_space_of_modified_lle():
    """Exactly up to the regularization of the weights of LLE."""
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(200, 2)) @ rng.normal(size=(2, 5))
    M = operator(ModifiedLLE(n_neighbors=8, reg=1e-12), flat)
    np.testing.assert_allclose(M @ flat, 0, atol=1e-8)


def test_weight_vectors_are_counted_as_published():
    values = np.array([[0.0, 0.1, 0.2, 5.0, 7.0], [0.0, 0.0, 0.0, 0.0, 7.0], [1.0, 1, 1, 1, 1]])
    np.testing.assert_array_equal(weight_counts(values, 2, 0.01), [2, 3, 1])
    np.testing.assert_array_equal(weight_counts(values, 2, 0.0), [1, 3, 1])
    np.testing.assert_array_equal(weight_counts(values, 2, 1 / 4), [3, 3, 1])


# --- agreement and recovery ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "name"), [(LLE, "standard"), (LTSA, "ltsa"), (ModifiedLLE, "modified")]
)
def test_agrees_with_scikit_learn(method, name):
    """Not for Hessian LLE, where scikit-learn uses the full complement and so computes LTSA."""
    X = make_swiss_roll(500, random_state=0).X
    options = {} if method is LLE else {"metric_fit": False}
    ours = method(2, n_neighbors=10, **options).fit_transform(X)
    theirs = LocallyLinearEmbedding(
        n_neighbors=10, n_components=2, method=name, eigen_solver="dense"
    ).fit_transform(X)
    assert subspace_angles(ours, theirs).max() < 1e-4


def test_the_lle_operator_is_the_product_of_residual_operators():
    X = make_swiss_roll(120, random_state=0).X
    M = operator(LLE(n_neighbors=8, reg=1e-3), X).toarray()
    graph = NeighborGraph.build(X, 8)
    W = np.zeros((120, 120))
    for i, neighbors in enumerate(graph.indices.reshape(-1, 8)):
        D = X[neighbors] - X[i]
        C = D @ D.T
        w = np.linalg.solve(C + 1e-3 * np.trace(C) * np.eye(8), np.ones(8))
        W[i, neighbors] = w / w.sum()
    R = np.eye(120) - W
    np.testing.assert_allclose(M, R.T @ R, atol=1e-9)


@pytest.mark.parametrize("hole", [False, True])
@pytest.mark.parametrize("method", SHEET)
def test_sheets_are_recovered_with_their_metric(method, hole):
    X, truth = make_swiss_roll(1500, hole=hole, random_state=0)
    model = method(n_neighbors=12).fit(X)
    # Modified LLE, scikit-learn's too, is less accurate without noise.
    rigid, affine = (0.06, 0.05) if method is ModifiedLLE else (0.03, 0.02)
    assert procrustes(model.embedding_, truth, "rigid").error < rigid
    assert procrustes(model.embedding_, truth, "affine").error < affine
    assert model.computed_eigenvalues_[2] > 10 * model.eigenvalues_[1]
    assert model.dimension_hint_ == 2


@pytest.mark.parametrize("method", SHEET)
def test_the_metric_fit_survives_noise(method):
    X, truth = make_swiss_roll(2000, noise=0.1, random_state=1)
    assert procrustes(method(n_neighbors=12).fit_transform(X), truth, "rigid").error < 0.15


def test_lle_of_a_flat_sheet_is_affine():
    X, truth = make_strip(800, aspect=1.3, n_features=6, random_state=0)
    assert procrustes(LLE(n_neighbors=10, reg=1e-6).fit_transform(X), truth, "affine").error < 1e-2


def test_flat_data_are_in_the_null_space_of_ltsa():
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(200, 2)) @ rng.normal(size=(2, 5))
    M = operator(LTSA(n_neighbors=8), flat)
    np.testing.assert_allclose(M @ flat, 0, atol=1e-10)


@pytest.mark.parametrize("method", LOCAL)
def test_rotated_shifted_and_scaled_data_give_the_same_embedding(method):
    X = make_swiss_roll(300, random_state=0).X
    turned = 5.0 * X @ ortho_group.rvs(3, random_state=1) + 100.0
    scale = 1.0 if method is LLE else 5.0
    plain, moved = (method(n_neighbors=12).fit_transform(A) for A in (X, turned))
    signs = np.sign((moved * plain).sum(axis=0))
    np.testing.assert_allclose(moved * signs / scale, plain, atol=1e-4 * np.abs(plain).max())


# --- transform and inverse ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "bare"), [(LLE, 0.01), (LTSA, 0.005), (HessianLLE, 0.03), (ModifiedLLE, 0.03)]
)
def test_new_points_land_where_they_belong(method, bare):
    X, truth = make_swiss_roll(2000, random_state=0)
    model = method(n_neighbors=12).fit(X[:1500])
    assert model.extension_error(X[:1500]) < bare
    Y = np.vstack([model.embedding_, model.transform(X[1500:])])
    inside = procrustes(model.embedding_, truth[:1500], "affine").error
    assert procrustes(Y, truth, "affine").error < inside + 0.01


def recovered(X, X_new):
    """Whether the inverse of LTSA uses tangent spaces, and R² of the reconstruction."""
    model = LTSA(n_neighbors=12).fit(X)
    back = model.inverse_transform(model.transform(X_new))
    lost = ((back - X_new) ** 2).sum() / ((X_new - X_new.mean(axis=0)) ** 2).sum()
    return model.inverse_.use_tangents, 1 - lost


def test_the_inverse_of_ltsa_uses_tangent_spaces():
    X, _ = make_strip(400, n_features=10, random_state=0)
    use_tangents, fraction = recovered(X[::2], X[1::2])
    assert use_tangents
    assert 1 - fraction < 1e-12


def test_the_inverse_of_ltsa_is_a_regression_for_data_off_a_manifold():
    """For digits the tangent spaces reconstruct worse than the mean does."""
    X = load_digits().data
    use_tangents, fraction = recovered(X[::2], X[1::2])
    assert not use_tangents
    assert fraction > 0.3


@pytest.mark.parametrize("method", LOCAL)
def test_separate_clusters_are_not_squeezed_to_points(method):
    """Other libraries return one point per cluster here, without a warning."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(80, 2)), rng.normal(size=(60, 2)) + 50.0])
    X = X @ np.linalg.qr(rng.normal(size=(3, 2)))[0].T
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        Y = method(n_neighbors=10).fit_transform(X)
    first, second = Y[:80], Y[80:]
    assert min(first.std(), second.std()) > 0.3
    apart = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
    np.testing.assert_allclose(
        apart, np.linalg.norm(X[:80].mean(axis=0) - X[80:].mean(axis=0)), rtol=1e-6
    )


@pytest.mark.parametrize("method", LOCAL)
def test_unusable_input_is_refused(method):
    X = make_swiss_roll(60, random_state=0).X
    with pytest.raises(ValueError, match="'join' must be one of 'separate', 'largest', 'error'"):
        method(disconnected="join").fit(X)
    with pytest.raises(ValueError, match="n_neighbors instead of radius"):
        method().fit(NeighborGraph.build(X, radius=20.0))
    with pytest.raises(ValueError, match="coordinates of the data"):
        method(metric="precomputed").fit(np.linalg.norm(X[:, None] - X[None], axis=2))


def test_too_few_neighbors_for_the_dimension():
    X = make_swiss_roll(60, random_state=0).X
    with pytest.raises(ValueError, match=r"n_neighbors=4 must be at least 5 for n_components=2"):
        HessianLLE(2, n_neighbors=4).fit(X)
    with pytest.raises(ValueError, match=r"n_neighbors=3 must be at least 4 for n_components=2"):
        LTSA(2, n_neighbors=3).fit(X)


@pytest.mark.parametrize("method", LOCAL)
def test_duplicates_stay_together(method):
    X, truth = make_strip(500, curl=2.0, random_state=0)
    copies = np.r_[np.arange(500), np.arange(50)]
    model = method(n_neighbors=12).fit(X[copies])
    Y = model.embedding_
    assert np.abs(Y[500:] - Y[:50]).max() < 1e-5 * np.abs(Y).max()
    plain = procrustes(method(n_neighbors=12).fit_transform(X), truth, "affine").error
    assert procrustes(Y, truth[copies], "affine").error < plain + 0.05


def test_a_point_that_is_no_neighbor_of_others_is_placed_by_its_neighbors():
    """Without its own neighborhood its coordinates would be arbitrary."""
    for seed in range(5):
        X, _ = make_strip(300, aspect=2.0, width=2.0, random_state=seed)
        X = np.vstack([X, [X[:, 0].max() + 0.6, 1.0]])
        graph = NeighborGraph.build(X, 10)
        assert 300 not in graph.indices
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Y = LTSA(n_neighbors=10).fit_transform(X)
        moved = procrustes(Y, X, "rigid").aligned
        assert np.linalg.norm(moved[300] - X[300]) < 0.1


def test_hessian_of_linearly_dependent_quadratic_forms():
    """Two columns of five points: against a pivoted factorization of each design."""
    a, b = np.meshgrid([-10.0, 10.0], np.arange(-2.0, 3.0))
    X = np.column_stack([a.ravel(), b.ravel()])
    H = operator(HessianLLE(2, n_neighbors=9), X).toarray()
    centered = X - X.mean(axis=0)
    U = np.linalg.svd(centered, full_matrices=False)[0]
    design = np.column_stack([np.ones(10), U, U[:, :1] ** 2, U[:, :1] * U[:, 1:], U[:, 1:] ** 2])
    linear = np.linalg.qr(design[:, :3])[0]
    rest = design[:, 3:] - linear @ (linear.T @ design[:, 3:])
    Q, R, _ = qr(rest, mode="economic", pivoting=True)
    Q = Q[:, np.abs(np.diag(R)) > 1e-10]
    remainder = np.eye(10) - linear @ linear.T - Q @ Q.T
    expected = 10 * (Q @ Q.T + 1e-3 * remainder)  # all ten neighborhoods are the same
    np.testing.assert_allclose(H, expected, atol=1e-10)


@pytest.mark.parametrize("n_neighbors", [6, 10, 20])
def test_hessian_lle_of_a_curve(n_neighbors):
    """One Hessian per point determines a function only up to oscillations at the ends."""
    t = np.linspace(0, 1, 300)
    parabola, helix = np.c_[t, t**2], np.c_[np.cos(9 * t), np.sin(9 * t), t]
    for X in (parabola, helix):
        length = np.r_[0, np.linalg.norm(np.diff(X, axis=0), axis=1).cumsum()]
        model = HessianLLE(1, n_neighbors=n_neighbors).fit(X)
        assert procrustes(model.embedding_, length[:, None], "rigid").error < 0.02
        assert (model.residuals_ <= 1e-3 * model.gaps_).all()


def test_hessian_of_points_on_a_line():
    """No neighborhood spans a plane, so the alignment error is used and gives a line."""
    X = np.column_stack([np.sort(np.random.default_rng(0).uniform(size=60)), np.zeros(60)])
    with pytest.warns(RankWarning, match="1 of n_components=2 coordinates are zero"):
        Y = HessianLLE(2, n_neighbors=8).fit_transform(X)
    assert procrustes(Y[:, :1], X[:, :1], "rigid").error < 1e-6


@pytest.mark.parametrize("method", SHEET)
def test_components_keep_the_size_they_have_in_the_data(method):
    small, large = make_strip(200, random_state=0).X, make_strip(200, random_state=1).X
    X = np.vstack([large * 5, small + 100.0])
    exact = {"reg": 1e-5} if method is ModifiedLLE else {}
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        Y = method(n_neighbors=12, **exact).fit_transform(X)
    assert procrustes(Y[:200], X[:200], "rigid").error < 1e-3
    assert procrustes(Y[200:], X[200:], "rigid").error < 1e-3


# --- scikit-learn's name -------------------------------------------------------------------------


def test_the_same_signature_and_coordinates_as_scikit_learn():
    ours, theirs = (inspect.signature(c) for c in (OurLLE, LocallyLinearEmbedding))
    assert {k: v.default for k, v in ours.parameters.items()} == {
        **{k: v.default for k, v in theirs.parameters.items()},
        "device": None,
    }
    X = make_swiss_roll(300, random_state=0).X
    model = OurLLE(n_neighbors=9).fit(X)
    reference = LocallyLinearEmbedding(n_neighbors=9, eigen_solver="dense").fit(X)
    assert subspace_angles(model.embedding_, reference.embedding_).max() < 1e-4
    np.testing.assert_allclose(
        model.reconstruction_error_, reference.reconstruction_error_, rtol=1e-3
    )


@pytest.mark.parametrize("method", ["standard", "ltsa", "modified"])
def test_coordinates_have_scikit_learns_scale(method):
    X = make_swiss_roll(300, random_state=0).X
    ours, theirs = (
        cls(n_neighbors=9, method=method, eigen_solver="dense").fit(X)
        for cls in (OurLLE, LocallyLinearEmbedding)
    )
    signs = np.sign((ours.embedding_ * theirs.embedding_).sum(axis=0))
    np.testing.assert_allclose(ours.embedding_ * signs, theirs.embedding_, atol=1e-5)
    np.testing.assert_allclose(ours.reconstruction_error_, theirs.reconstruction_error_, rtol=1e-5)
    expected = theirs.nbrs_.kneighbors(X[:5] + 0.1, 4)
    for found, value in zip(ours.nbrs_.kneighbors(X[:5] + 0.1, 4), expected, strict=True):
        np.testing.assert_array_equal(found, value)


@pytest.mark.parametrize(
    ("method", "ours"),
    [("standard", LLE), ("hessian", HessianLLE), ("modified", ModifiedLLE), ("ltsa", LTSA)],
)
def test_each_method_is_the_estimator_of_that_name(method, ours):
    X = make_swiss_roll(200, random_state=0).X
    options = {} if ours is LLE else {"metric_fit": False}
    model = OurLLE(n_neighbors=9, method=method).fit(X)
    reference = ours(2, n_neighbors=9, **options).fit(X)
    scale = np.sqrt(200)
    np.testing.assert_allclose(model.embedding_ * scale, reference.embedding_, atol=1e-9)
    new = X[:9] + 0.05
    np.testing.assert_allclose(model.transform(new) * scale, reference.transform(new), atol=1e-9)
    assert model.needs_dimension == reference.needs_dimension


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="method='exact' must be one of 'standard', 'hessian'"):
        OurLLE(method="exact").fit(make_swiss_roll(60, random_state=0).X)


def test_warnings_name_no_parameter_that_scikit_learn_does_not_have():
    X = np.vstack([make_strip(40, random_state=0).X, make_strip(40, random_state=1).X + 50.0])
    with pytest.warns(DisconnectedGraphWarning) as caught:
        OurLLE().fit(X)
    assert "disconnected=" not in str(caught[0].message)


def test_scikit_learns_checks_pass_under_its_name():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(OurLLE(), on_fail=None, on_skip=None)
    assert not [(o["check_name"], o["exception"]) for o in outcomes if o["status"] == "failed"]


@pytest.mark.parametrize("method", SHEET)
@pytest.mark.parametrize("copies", [12, 40])
def test_neighborhoods_of_duplicates_are_refused(method, copies):
    """They have no tangent space; with eleven duplicates one neighbor is another point."""
    X, coordinates = make_swiss_roll(1000, random_state=0)
    X = np.vstack([X, np.repeat(X[:1], copies - 1, axis=0)])
    with pytest.raises(
        ValueError, match=f"row 0 occurs {copies} times.*pass n_neighbors={copies + 1}"
    ):
        method(n_neighbors=12).fit(X)
    model = method(n_neighbors=12).fit(X[:1010])
    assert procrustes(model.embedding_[:1000], coordinates).error < 0.05
    np.testing.assert_allclose(model.embedding_[1000:], model.embedding_[[0] * 10], atol=1e-3)


@pytest.mark.parametrize("method", SHEET)
def test_one_outlier_does_not_make_the_others_degenerate(method):
    X, _ = make_swiss_roll(2000, random_state=0)
    X[5] = [1e6, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RankWarning)
        method(n_neighbors=12).fit(X)


# --- data that do not lie near a surface ----------------------------------------------------------


def cloud():
    """Points in all directions of ten dimensions."""
    return np.random.default_rng(0).normal(size=(600, 10))


def largest_fraction(Y):
    """Largest fraction of the variance of a coordinate that one point holds."""
    squares = (Y - Y.mean(axis=0)) ** 2
    return (squares.max(axis=0) / squares.sum(axis=0)).max()


@pytest.mark.parametrize("method", SHEET)
@pytest.mark.parametrize("X", [StandardScaler().fit_transform(load_digits().data[:900]), cloud()])
def test_no_point_holds_most_of_the_variance(method, X):
    with pytest.warns(TangentSpaceWarning, match=r"0\.\d\d, above 0\.15.*laplacian_weight=0 "):
        model = method(2).fit(X)
    assert 0 < model.laplacian_weight_ < 1
    assert largest_fraction(model.embedding_) < 0.05
    assert largest_fraction(method(2, laplacian_weight=0).fit_transform(X)) > 0.5


def test_warnings_of_a_cross_validation_are_located_at_its_caller():
    with pytest.warns(TangentSpaceWarning) as caught:
        cross_val_score(LTSA(2), load_digits().data[:200], cv=2)
    assert {w.filename for w in caught if w.category is TangentSpaceWarning} == {__file__}


@pytest.mark.parametrize("method", ["hessian", "modified", "ltsa"])
def test_scikit_learns_name_has_no_weight_of_the_laplacian(method):
    X = load_digits().data[:200]
    model = OurLLE(n_neighbors=12, method=method).fit(X)
    assert not hasattr(model, "laplacian_weight_")


@pytest.mark.parametrize("method", SHEET)
@pytest.mark.parametrize(("n_features", "noise"), [(3, 0.0), (3, 0.5), (20, 0.0), (20, 0.25)])
@pytest.mark.parametrize("n_components", [2, 3])
def test_sheets_are_not_regularized(method, n_features, noise, n_components):
    """Neither with noise, in units of the distance of neighbors, nor with too many coordinates."""
    X, _ = make_strip(500, aspect=3.0, curl=2.0, n_features=n_features, random_state=0)
    spacing = np.median(NeighborGraph.build(X, 1).distances)
    X = X + noise * spacing * np.random.default_rng(0).normal(size=X.shape)
    posed = method(n_components).pose(X)
    assert posed.alignment.laplacian_weight == 0


def explained(Y, sheet):
    """Smallest fraction of the variance of a coordinate of the sheet that Y explains linearly."""
    A = np.column_stack([np.ones(len(Y)), Y])
    residuals = sheet - A @ np.linalg.lstsq(A, sheet, rcond=None)[0]
    return (1 - residuals.var(axis=0) / sheet.var(axis=0)).min()


@pytest.mark.parametrize("method", SHEET)
@pytest.mark.parametrize("metric_fit", [True, False])
def test_a_direction_lost_in_noise_is_announced_with_remedies_that_help(method, metric_fit):
    X, sheet = make_s_curve(600, random_state=0)
    X = X + 0.05 * np.random.default_rng(1).normal(size=X.shape)
    with pytest.warns(
        RedundantCoordinateWarning,
        match=r"coordinate 1 .*predictable.*=10 may be too few.*pass n_neighbors=20, .*nents=1 ",
    ):
        model = method(2, n_neighbors=10, metric_fit=metric_fit).fit(X)
    assert explained(model.embedding_, sheet) < 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error", RedundantCoordinateWarning)
        more = method(2, n_neighbors=20, metric_fit=metric_fit).fit(X)
        apart = NonRedundant(method(2, n_neighbors=10, metric_fit=metric_fit)).fit(X)
    assert explained(more.embedding_, sheet) > 0.95
    assert explained(apart.embedding_, sheet) > 0.9


@pytest.mark.parametrize(
    ("n_neighbors", "remedy"), [(25, "pass n_neighbors=39, wrap"), (39, "sheet: wrap")]
)
def test_no_more_neighbors_are_recommended_than_there_are(n_neighbors, remedy):
    t = np.linspace(0, 1, 40)
    with pytest.warns(RedundantCoordinateWarning, match=remedy):
        warn_if_redundant(np.column_stack([t, np.cos(2 * np.pi * t)]), n_neighbors, 39)


@pytest.mark.parametrize("method", SHEET)
def test_sheets_and_sets_that_are_none_are_not_called_redundant(method):
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RedundantCoordinateWarning)
        method(2).fit(make_strip(500, aspect=8.0, random_state=0).X)  # long and narrow
        method(2).fit(make_swiss_roll(500, random_state=0).X)
        method(2).fit(load_digits().data[:300])  # these have their own warning
        method(2).fit(rng.normal(size=(20, 3)) * [30, 1, 0])  # few points


def test_misfit_of_tangent_spaces():
    simplex = np.eye(7)[None]  # its six directions have equal variances
    np.testing.assert_allclose([tangent_misfit(simplex, d) for d in (1, 2, 5)], 1)
    np.testing.assert_allclose(tangent_misfit(simplex, 6), 0)
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(4, 9, 2)) @ rng.normal(size=(2, 6))
    np.testing.assert_allclose([tangent_misfit(flat, d) for d in (2, 3)], 0, atol=1e-12)
    local = rng.normal(size=(1, 9, 4))
    variances = np.linalg.svd(local[0] - local[0].mean(axis=0))[1] ** 2
    expected = variances[2:].sum() / variances.sum() / (1 - 2 / 4) * variances[2] / variances[1]
    np.testing.assert_allclose(tangent_misfit(local, 2), expected)


@pytest.mark.parametrize("method", SHEET)
def test_the_laplacian_is_that_of_the_neighbor_graph(method):
    X = make_swiss_roll(100, random_state=0).X
    plain, mixed, alone = (
        operator(method(2, n_neighbors=8, laplacian_weight=w), X).toarray() for w in (0, 0.3, 1)
    )
    directed = NeighborGraph.build(X, 8).matrix(np.ones(800)).toarray()
    np.testing.assert_allclose(alone, laplacian(directed + directed.T) / 2, atol=1e-12)
    np.testing.assert_allclose(mixed, 0.7 * plain + 0.3 * alone, atol=1e-12)


@pytest.mark.parametrize("weight", [-0.1, 1.5])
def test_weights_outside_of_the_unit_interval_are_refused(weight):
    with pytest.raises(ValueError, match=f"laplacian_weight={weight} must be at"):
        LTSA(laplacian_weight=weight).fit(make_swiss_roll(60, random_state=0).X)


def test_neighborhoods_without_extent_have_no_noise():
    """Squares of these differences underflow."""
    X = 1e-170 * np.random.default_rng(0).normal(size=(1, 6, 3))
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(noise_ratios(X, 2), 0)


def test_weights_of_differences_whose_squares_underflow():
    differences = np.random.default_rng(0).normal(size=(4, 6, 3))
    expected = barycentric_weights(differences, 1e-3)
    np.testing.assert_array_equal(barycentric_weights(differences * 2.0**-530, 1e-3), expected)
