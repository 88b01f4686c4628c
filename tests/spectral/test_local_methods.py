"""LLE, LTSA and Hessian LLE against their definitions, scikit-learn, and known sheets."""

import inspect
import warnings

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.stats import ortho_group
from sklearn.datasets import load_digits
from sklearn.manifold import LocallyLinearEmbedding
from sklearn.utils.estimator_checks import check_estimator

from manifoldry import LLE, LTSA, HessianLLE, NeighborGraph
from manifoldry import LocallyLinearEmbedding as OurLLE
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.neighbors.neighborhoods import (
    Neighborhoods,
    alignment_blocks,
    barycentric_weights,
    tangent_bases,
)

LOCAL = [LLE, LTSA, HessianLLE]
SHEET = [LTSA, HessianLLE]


def rigid_error(Y, truth):
    """Relative Procrustes error without scaling."""
    Y, truth = Y - Y.mean(axis=0), truth - truth.mean(axis=0)
    U, _, Vt = np.linalg.svd(Y.T @ truth)
    return np.linalg.norm(Y @ U @ Vt - truth) / np.linalg.norm(truth)


def affine_error(Y, truth):
    design = np.column_stack([np.ones(len(Y)), Y])
    residual = truth - design @ np.linalg.lstsq(design, truth, rcond=None)[0]
    return np.linalg.norm(residual) / np.linalg.norm(truth - truth.mean(axis=0))


def operator(estimator, X):
    estimator.n_components_, estimator.n_features_in_ = 2, X.shape[1]
    return estimator._pose(X).operator


# --- local problems ------------------------------------------------------------------------------


def test_weights_reproduce_a_point_inside_its_neighbours():
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(20, 8, 3))
    weights = barycentric_weights(differences, 1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(np.einsum("nk,nkd->nd", weights, differences), 0, atol=1e-6)


def test_weights_do_not_change_under_rotation_translation_and_scale():
    """E4.4: exact because the ridge is a share of the local trace."""
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(10, 7, 4))
    turned = 37.0 * differences @ ortho_group.rvs(4, random_state=0)
    np.testing.assert_allclose(
        barycentric_weights(turned, 1e-3), barycentric_weights(differences, 1e-3), rtol=1e-8
    )


def test_excluded_neighbours_get_no_weight():
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


# --- agreement and recovery ----------------------------------------------------------------------


@pytest.mark.parametrize(("method", "name"), [(LLE, "standard"), (LTSA, "ltsa")])
def test_agrees_with_scikit_learn(method, name):
    """Not for Hessian LLE: scikit-learn keeps the full complement there and computes LTSA."""
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
    assert rigid_error(model.embedding_, truth) < 0.03
    assert affine_error(model.embedding_, truth) < 0.02
    assert model.computed_eigenvalues_[2] > 10 * model.eigenvalues_[1]
    assert model.dimension_hint_ == 2


@pytest.mark.parametrize("method", SHEET)
def test_the_metric_fit_survives_noise(method):
    X, truth = make_swiss_roll(2000, noise=0.1, random_state=1)
    assert rigid_error(method(n_neighbors=12).fit_transform(X), truth) < 0.15


def test_lle_of_a_flat_sheet_is_affine():
    X, truth = make_strip(800, aspect=1.3, n_features=6, random_state=0)
    assert affine_error(LLE(n_neighbors=10, reg=1e-6).fit_transform(X), truth) < 1e-2


def test_flat_data_are_in_the_null_space_of_ltsa():
    rng = np.random.default_rng(0)
    flat = rng.uniform(size=(200, 2)) @ rng.normal(size=(2, 5))
    M = operator(LTSA(n_neighbors=8), flat)
    np.testing.assert_allclose(M @ flat, 0, atol=1e-10)


@pytest.mark.parametrize("method", LOCAL)
def test_turned_moved_and_scaled_data_give_the_same_map(method):
    X = make_swiss_roll(300, random_state=0).X
    turned = 5.0 * X @ ortho_group.rvs(3, random_state=1) + 100.0
    scale = 1.0 if method is LLE else 5.0
    plain, moved = (method(n_neighbors=12).fit_transform(A) for A in (X, turned))
    signs = np.sign((moved * plain).sum(axis=0))
    np.testing.assert_allclose(moved * signs / scale, plain, atol=1e-4 * np.abs(plain).max())


# --- maps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "bare"), [(LLE, 0.01), (LTSA, 0.005), (HessianLLE, 0.03)])
def test_new_points_land_where_they_belong(method, bare):
    X, truth = make_swiss_roll(2000, random_state=0)
    model = method(n_neighbors=12).fit(X[:1500])
    assert model.extension_error(X[:1500]) < bare
    Y = np.vstack([model.embedding_, model.transform(X[1500:])])
    inside = affine_error(model.embedding_, truth[:1500])
    assert affine_error(Y, truth) < inside + 0.01


def recovered(X, X_new):
    """Share of unseen data's variance that survives the map and back: LTSA's, tangents', means'."""
    model = LTSA(n_neighbors=12).fit(X)
    Z = model.transform(X_new)
    variance = X_new.var(axis=0).sum() * len(X_new)
    inverse = model._inverse
    backs = [model.inverse_transform(Z), inverse.affine.inverse(Z), inverse.regression.predict(Z)]
    return [1 - ((back - X_new) ** 2).sum() / variance for back in backs]


def test_ltsa_goes_back_along_its_own_tangents():
    X, _ = make_swiss_roll(2000, noise=0.3, random_state=0)
    chosen, tangents, means = recovered(X[:1500], X[1500:])
    assert chosen == tangents > means > 0.99


def test_ltsa_goes_back_by_regression_where_data_are_no_sheet():
    """Along the tangents of digits one ends farther from them than at their mean."""
    X = load_digits().data
    chosen, tangents, means = recovered(X[::2], X[1::2])
    assert chosen == means > 0.3 > tangents


@pytest.mark.parametrize("method", LOCAL)
def test_separate_clusters_are_not_squeezed_to_points(method):
    """Peers return one point per cluster here, and say nothing."""
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
def test_what_they_cannot_use_is_refused(method):
    X = make_swiss_roll(60, random_state=0).X
    with pytest.raises(ValueError, match="'join' has no meaning"):
        method(disconnected="join").fit(X)
    with pytest.raises(ValueError, match="n_neighbors instead of radius"):
        method().fit(NeighborGraph.build(X, radius=20.0))
    with pytest.raises(ValueError, match="coordinates of the data"):
        method(metric="precomputed").fit(np.linalg.norm(X[:, None] - X[None], axis=2))


def test_too_few_neighbours_for_the_dimension():
    X = make_swiss_roll(60, random_state=0).X
    with pytest.raises(ValueError, match=r"n_neighbors=4 must be at least 5 for n_components=2"):
        HessianLLE(2, n_neighbors=4).fit(X)
    with pytest.raises(ValueError, match=r"n_neighbors=2 must be at least 3 for n_components=2"):
        LTSA(2, n_neighbors=2).fit(X)


# --- scikit-learn's name -------------------------------------------------------------------------


def test_the_same_signature_and_coordinates_as_scikit_learn():
    ours, theirs = (inspect.signature(c) for c in (OurLLE, LocallyLinearEmbedding))
    assert {k: v.default for k, v in ours.parameters.items()} == {
        k: v.default for k, v in theirs.parameters.items()
    }
    X = make_swiss_roll(300, random_state=0).X
    model = OurLLE(n_neighbors=9).fit(X)
    reference = LocallyLinearEmbedding(n_neighbors=9, eigen_solver="dense").fit(X)
    assert subspace_angles(model.embedding_, reference.embedding_).max() < 1e-4
    np.testing.assert_allclose(
        model.reconstruction_error_, reference.reconstruction_error_, rtol=1e-3
    )


@pytest.mark.parametrize(("method", "ours"), [("ltsa", "LTSA"), ("hessian", "HessianLLE")])
def test_other_methods_name_our_class(method, ours):
    with pytest.raises(ValueError, match=rf"method='{method}'.*use manifoldry.{ours}"):
        OurLLE(method=method).fit(make_swiss_roll(60, random_state=0).X)


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match=r"method='modified' is not LLE; pass method='standard'"):
        OurLLE(method="modified").fit(make_swiss_roll(60, random_state=0).X)


def test_scikit_learns_checks_pass_under_its_name():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(OurLLE(), on_fail=None, on_skip=None)
    assert not [(o["check_name"], o["exception"]) for o in outcomes if o["status"] == "failed"]
