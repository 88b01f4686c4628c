"""Conformal eigenmaps: the objective written out, its optimum, known conformal maps, bad input."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from manifoldry import (
    LLE,
    LTSA,
    DiffusionMaps,
    KernelPCA,
    LaplacianEigenmaps,
    NeighborGraph,
    SpectralClustering,
)
from manifoldry.datasets import make_hemisphere, make_strip, make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphWarning, RankWarning
from manifoldry.metrics import procrustes
from manifoldry.neighbors.neighborhoods import with_itself
from manifoldry.optimize.interior_point import svec
from manifoldry.optimize.semidefinite_quadratic import SemidefiniteQuadratic
from manifoldry.semidefinite.conformal_eigenmaps import ConformalEigenmaps
from manifoldry.semidefinite.conformal_map import NeighborhoodPairs, conformal_form, conformal_map


def parts(n=120, m=6, seed=0, k=8):
    """Orthonormal functions on a half sphere, the pairs of its neighborhoods, their members."""
    X, _ = make_hemisphere(n, random_state=seed)
    graph = NeighborGraph.build(X, k)
    Y = LaplacianEigenmaps(m).fit(graph).embedding_
    U = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)[0]
    return U, NeighborhoodPairs(X, with_itself(graph))


def objective(Z, X, members):
    """The sum over neighborhoods as the paper has it, and its best scales."""
    total, scales = 0.0, []
    for hood in members:
        found, lengths = (pdist(A[hood], "sqeuclidean") for A in (Z, X))
        scale = found @ lengths / (lengths @ lengths) if lengths.any() else 0.0
        total += np.square(found - scale * lengths).sum()
        scales.append(scale)
    return total, np.array(scales)


def angle_difference(A, B, k=6):
    """Mean difference of angles at all points of `A` between its neighbors, in degrees."""
    near = NeighborGraph.build(A, k).indices.reshape(-1, k)
    a, b = np.triu_indices(k, 1)

    def angles(points):
        steps = points[near] - points[:, None]
        steps = steps / np.linalg.norm(steps, axis=2, keepdims=True)
        return np.arccos(np.clip((steps[:, a] * steps[:, b]).sum(axis=2), -1, 1))

    return np.degrees(np.abs(angles(A) - angles(B)).mean())


class TestObjective:
    def test_quadratic_form_is_the_sum_written_out(self):
        U, pairs = parts()
        R = np.random.default_rng(0).standard_normal((6, 3))
        p = svec(R @ R.T)
        expected, _ = objective(U @ R, pairs.X, pairs.members)
        assert p @ conformal_form(U, pairs) @ p == pytest.approx(expected, rel=1e-12)

    def test_many_features(self):
        """Lengths by inner products agree with differences."""
        U, pairs = parts()
        wide = np.hstack([pairs.X, np.zeros((120, 30))])
        again = NeighborhoodPairs(wide, pairs.members)
        np.testing.assert_allclose(conformal_form(U, again), conformal_form(U, pairs), atol=1e-15)

    def test_members_elsewhere_do_not_count(self):
        """As if each neighborhood had only the others."""
        U, pairs = parts()
        members = pairs.members.copy()
        members[:, 3::2] = -1
        fewer = NeighborhoodPairs(pairs.X, np.delete(members, np.s_[3::2], axis=1))
        found = conformal_form(U, NeighborhoodPairs(pairs.X, members))
        np.testing.assert_allclose(found, conformal_form(U, fewer), atol=1e-15)

    def test_semidefinite(self):
        Q = conformal_form(*parts())
        assert np.linalg.eigvalsh(Q)[0] >= -1e-12 * np.abs(Q).max()

    def test_duplicates_are_held_together(self):
        """Where all lengths are zero no scale is defined, yet the points belong together."""
        U, pairs = parts()
        one = NeighborhoodPairs(np.ones_like(pairs.X), pairs.members)
        p = svec(np.eye(6))
        expected, _ = objective(U, one.X, one.members)
        assert p @ conformal_form(U, one) @ p == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("refine", [True, False])
    def test_loss_and_scales_of_the_map(self, refine):
        X, _ = make_hemisphere(150, random_state=1)
        model = ConformalEigenmaps(2, refine=refine, n_neighbors=8).fit(X)
        members = with_itself(NeighborGraph.build(X, 8))
        size = np.sqrt(np.square(model.embedding_ - model.embedding_.mean(axis=0)).sum())
        total, _ = objective(model.embedding_ / size, X, members)
        assert model.loss_ == pytest.approx(total, rel=1e-9)
        _, scales = objective(model.embedding_, X, members)
        np.testing.assert_allclose(model.scales_, np.sqrt(scales), rtol=1e-9)
        assert (model.scales_ > 0).all()

    def test_size_is_the_best(self):
        """No other size of the map brings all pairs nearer to their lengths in the data."""
        X, _ = make_hemisphere(150, random_state=1)
        Y = ConformalEigenmaps(2, n_neighbors=8).fit_transform(X)
        members = with_itself(NeighborGraph.build(X, 8))

        def misfit(size):
            squares = [
                (pdist(size * Y[h], "sqeuclidean"), pdist(X[h], "sqeuclidean")) for h in members
            ]
            return sum(np.square(a - b).sum() for a, b in squares)

        assert misfit(1.0) < min(misfit(0.999), misfit(1.001))


class TestOptimum:
    def test_lower_than_the_basis_itself(self):
        U, pairs = parts()
        Q = conformal_form(U, pairs)
        solution = conformal_map(U, pairs, 2, True).solution
        even = svec(np.eye(6) / 6)
        assert solution.value < even @ Q @ even
        assert solution.converged
        assert np.trace(solution.P) == pytest.approx(1, abs=1e-12)

    def test_conditions(self):
        Q = conformal_form(*parts())
        P = SemidefiniteQuadratic(2 * Q, trace_one=True).solve().P
        pull = 2 * Q @ svec(P)
        gradient = np.zeros((6, 6))
        a, b = np.triu_indices(6)
        gradient[a, b] = gradient[b, a] = pull / np.where(a == b, 1, np.sqrt(2))
        slack = np.linalg.eigvalsh(gradient - (gradient * P).sum() * np.eye(6))[0]
        assert slack >= -1e-9 * np.abs(gradient).max()

    def test_more_functions_lower_the_bound(self):
        X, _ = make_hemisphere(200, random_state=0)
        for basis in ("lle", "laplacian"):
            bounds = [
                ConformalEigenmaps(basis=basis, n_basis=m).fit(X).bound_ for m in (3, 6, 9, 12)
            ]
            assert (np.diff(bounds) < 0).all()

    def test_only_the_span_matters(self):
        U, pairs = parts()
        M = np.random.default_rng(1).standard_normal((6, 6))
        Z = [
            (Y - found.center) @ found.axes
            for Y in (U, U @ M + 3.0)
            for found in [conformal_map(Y, pairs, 2, True)]
        ]
        np.testing.assert_allclose(Z[1], Z[0], atol=1e-8)

    def test_against_a_conic_solver(self):
        cvxpy = pytest.importorskip("cvxpy", reason="the oracle is cvxpy with Clarabel")
        Q = conformal_form(*parts())
        Q /= np.abs(Q).max()
        values, vectors = np.linalg.eigh(Q)
        root = (vectors * np.sqrt(np.maximum(values, 0))).T
        P = cvxpy.Variable((6, 6), PSD=True)
        a, b = np.triu_indices(6)
        p = cvxpy.hstack(
            [P[i, j] * (1 if i == j else np.sqrt(2)) for i, j in zip(a, b, strict=True)]
        )
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(root @ p)), [cvxpy.trace(P) == 1])
        problem.solve(solver="CLARABEL")
        found = SemidefiniteQuadratic(2 * Q, trace_one=True).solve()
        assert found.value == pytest.approx(problem.value, rel=1e-5)

    def test_refined_between_bound_and_projection(self):
        X, _ = make_hemisphere(300, random_state=0)
        projected, refined = (ConformalEigenmaps(refine=r).fit(X) for r in (False, True))
        assert refined.bound_ == projected.bound_
        assert refined.bound_ < refined.loss_ < 0.5 * projected.loss_

    def test_nothing_to_refine_where_two_coordinates_do(self):
        X, _ = make_hemisphere(300, random_state=0)
        model = ConformalEigenmaps(basis="laplacian", n_basis=8).fit(X)
        assert model.dimension_hint_ == 2
        assert model.loss_ == pytest.approx(model.bound_, rel=1e-9)


class TestKnownMaps:
    def test_a_plane_stays_what_it_is(self):
        """In the data's own units, with scale one everywhere."""
        X, _ = make_strip(300, random_state=0)
        model = ConformalEigenmaps(basis=LLE(reg=1e-9)).fit(X)
        assert procrustes(model.embedding_, X, "rigid").error < 1e-3
        assert np.abs(model.scales_ - 1).max() < 1e-2

    def test_a_roll_is_flattened(self):
        X, truth = make_swiss_roll(800, random_state=0)
        model = ConformalEigenmaps().fit(X)
        assert procrustes(model.embedding_, truth).error < 0.1
        assert procrustes(LLE().fit_transform(X), truth).error > 0.3

    @pytest.mark.parametrize("basis", ["lle", "laplacian"])
    def test_half_sphere_becomes_its_stereographic_projection(self, basis):
        errors = []
        for seed in range(3):
            X, truth = make_hemisphere(400, random_state=seed)
            model = ConformalEigenmaps(basis=basis).fit(X)
            maps = model.basis_.embedding_[:, :2], model.embedding_
            errors.append([(procrustes(Y, truth).error, angle_difference(truth, Y)) for Y in maps])
        before, after = np.mean(errors, axis=0)
        assert after[0] < 0.9 * before[0]
        assert after[1] < before[1]
        if basis == "lle":
            assert (after < 0.7 * before).all()

    def test_scales_are_those_of_the_stereographic_projection(self):
        """(1 + r²)/2 times a constant, r being the distance from the center of the projection."""
        X, truth = make_hemisphere(600, random_state=0)
        model = ConformalEigenmaps(n_basis=15).fit(X)
        factor = 1 + np.square(truth / np.abs(truth).max()).sum(axis=1)
        assert np.corrcoef(np.log(model.scales_), np.log(factor))[0, 1] > 0.9


class TestBases:
    def test_named_bases_are_their_estimators(self):
        X, _ = make_hemisphere(150, random_state=0)
        for name, basis in {"lle": LLE(), "laplacian": LaplacianEigenmaps()}.items():
            named, given = (ConformalEigenmaps(basis=b).fit(X) for b in (name, basis))
            np.testing.assert_allclose(named.embedding_, given.embedding_, atol=1e-9)

    @pytest.mark.parametrize("basis", [DiffusionMaps(), KernelPCA()])
    def test_others(self, basis):
        X, truth = make_hemisphere(200, random_state=0)
        model = ConformalEigenmaps(basis=basis).fit(X)
        assert procrustes(model.embedding_, truth).error < 0.3
        assert model.extension_error(X) < 1e-7
        assert basis.n_components is None  # a copy was fitted

    def test_ready_graphs(self):
        X, _ = make_hemisphere(150, random_state=0)
        given = ConformalEigenmaps().fit(NeighborGraph.build(X, 10))
        np.testing.assert_array_equal(given.embedding_, ConformalEigenmaps().fit(X).embedding_)

    @pytest.mark.parametrize(
        ("params", "error", "message"),
        [
            ({"basis": "pca"}, ValueError, "basis='pca' must be one of 'lle', 'laplacian'"),
            ({"basis": 3}, TypeError, "basis=3 must be one of 'lle', 'laplacian' or one of"),
            ({"basis": LTSA()}, TypeError, "has no eigenvectors beyond its n_components"),
            ({"basis": SpectralClustering(3)}, TypeError, "has no eigenvectors beyond"),
            ({"n_basis": 0}, ValueError, "n_basis=0 must be at least 1"),
            ({"n_basis": 2.5}, TypeError, "n_basis=2.5 must be a whole number"),
            ({"n_basis": 60}, ValueError, "n_basis=60 must be at most n_samples - 1=59; pass n_b"),
            (
                {"n_basis": 3, "n_components": 4},
                ValueError,
                "n_components=4 must be at most n_basis",
            ),
            ({"disconnected": "join"}, ValueError, "disconnected='join' must be one of 'separate'"),
            ({"metric": "precomputed"}, ValueError, "needs the coordinates of the data"),
        ],
    )
    def test_refused(self, params, error, message):
        X, _ = make_hemisphere(60, random_state=0)
        X = X @ X.T if "metric" in params else X
        with pytest.raises(error, match=message):
            ConformalEigenmaps(**params).fit(np.abs(X) if "metric" in params else X)

    def test_radius_graphs_are_refused(self):
        X, _ = make_hemisphere(60, random_state=0)
        with pytest.raises(ValueError, match="needs the same number of neighbors for each point"):
            ConformalEigenmaps().fit(NeighborGraph.build(X, radius=1.0))


class TestLayout:
    def two(self):
        X, _ = make_strip(150, random_state=0)
        Y, _ = make_strip(100, random_state=1)
        return np.vstack([X, 0.5 * Y + [30.0, 0.0]])

    def test_each_keeps_its_size_and_place(self):
        X = self.two()
        with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
            model = ConformalEigenmaps().fit(X)
        for rows in (slice(150), slice(150, None)):
            assert procrustes(model.embedding_[rows], X[rows], "rigid").error < 0.05
        centers = [model.embedding_[rows].mean(axis=0) for rows in (slice(150), slice(150, None))]
        apart = np.linalg.norm(X[:150].mean(axis=0) - X[150:].mean(axis=0))
        assert np.linalg.norm(centers[0] - centers[1]) == pytest.approx(apart)

    def test_new_points_find_their_component(self):
        X = self.two()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DisconnectedGraphWarning)
            model = ConformalEigenmaps().fit(X)
        placed = model.transform(X + 1e-9)
        np.testing.assert_allclose(placed, model.embedding_, atol=0.1)

    def test_largest_only(self):
        X = self.two()
        with pytest.warns(DisconnectedGraphWarning, match="only the largest"):
            model = ConformalEigenmaps(disconnected="largest").fit(X)
        assert np.isnan(model.embedding_[150:]).all()
        assert np.isnan(model.scales_[150:]).all()
        assert np.isfinite(model.embedding_[:150]).all()
        assert np.isnan(model.transform(X[200:201] + 0.01)).all()


def test_more_coordinates_than_the_optimum_has():
    X = np.linspace(0, 1, 60)[:, None] ** [1, 2]
    with pytest.warns(RankWarning, match="of n_components=4 coordinates are zero"):
        model = ConformalEigenmaps(4, basis="laplacian").fit(X)
    assert np.isfinite(model.embedding_).all()


def test_few_points():
    """Ten points work with what is there."""
    model = ConformalEigenmaps().fit(np.random.default_rng(0).standard_normal((6, 3)))
    assert model.n_basis_ == 5
    assert np.isfinite(model.embedding_).all()


def test_components_of_tiny_data():
    """Their functions have the size of the data, whose reciprocal is infinite."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(30, 3)) + 50])
    with pytest.warns(DisconnectedGraphWarning):
        plain, tiny = (ConformalEigenmaps(2).fit(s * X).embedding_ for s in (1.0, 1e-310))
    np.testing.assert_allclose(tiny / 1e-310, plain, atol=1e-6)
