"""Unfolding with landmarks: the maps they represent, and the agreement with the full problem."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import MVU, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import ConvergenceWarning, DisconnectedGraphWarning
from manifoldry.metrics import procrustes
from manifoldry.semidefinite import EdgeConstraint
from manifoldry.semidefinite.edge_lengths import DistinctPoints, EdgeLengths
from manifoldry.semidefinite.landmarks import LandmarkUnfolding, landmark_interpolation
from manifoldry.semidefinite.unfolding_problem import FreeUnfolding


def posed(X, k=8, slack=0.0):
    graph = NeighborGraph.build(X, k)
    component = graph.components()[1]
    points = DistinctPoints.of(graph, np.ones(len(X), dtype=bool))
    edges = EdgeLengths.of(graph, points, True)
    return FreeUnfolding(edges, (-0.01, 0.01), slack, points.multiplicity, component)


FLAT = np.random.default_rng(0).uniform(size=(90, 2))


class TestInterpolation:
    def test_weights_sum_to_one(self):
        Q = landmark_interpolation(FLAT, posed(FLAT), 12, np.random.default_rng(0))
        assert Q.shape == (90, 12)
        np.testing.assert_allclose(Q.sum(axis=1), 1.0, atol=1e-6)

    def test_landmarks_are_interpolated_exactly(self):
        Q = landmark_interpolation(FLAT, posed(FLAT), 12, np.random.default_rng(0))
        own = [np.flatnonzero((np.eye(12)[i] == Q).all(axis=1)) for i in range(12)]
        assert all(len(rows) == 1 for rows in own)
        landmarks = FLAT[np.concatenate(own)]
        assert cdist(landmarks, landmarks)[np.triu_indices(12, 1)].min() > 0.1  # spread evenly

    def test_a_flat_sheet_is_interpolated(self):
        """Affine functions cost LLE nothing but its ridge."""
        Q = landmark_interpolation(FLAT, posed(FLAT), 12, np.random.default_rng(0))
        best = np.linalg.lstsq(Q, FLAT, rcond=None)[0]
        assert np.abs(Q @ best - FLAT).max() < 0.02

    def test_all_points_may_be_landmarks(self):
        Q = landmark_interpolation(FLAT, posed(FLAT), 90, np.random.default_rng(0))
        assert np.array_equal(np.sort(Q, axis=1)[:, -1], np.ones(90))
        assert np.array_equal(Q.sum(axis=0), np.ones(90))

    def test_every_component_has_landmarks(self):
        X = np.vstack([FLAT, FLAT[:8] + 50.0])
        Q = landmark_interpolation(X, posed(X, k=5), 20, np.random.default_rng(0))
        elsewhere = np.abs(Q[:90]).max(axis=0) == 0
        assert 1 <= elsewhere.sum() < 5
        assert np.abs(Q[90:][:, ~elsewhere]).max() == 0


@pytest.fixture(scope="class")
def parts(request):
    """The full problem, some of its edges, and the landmark problem with those constraints."""
    cls = request.cls
    cls.whole = posed(FLAT)
    Q = landmark_interpolation(FLAT, cls.whole, 15, np.random.default_rng(0))
    cls.rows = np.arange(0, cls.whole.edges.count, 3)
    cls.problem = LandmarkUnfolding.of(cls.whole, Q, cls.rows)
    cls.R = np.random.default_rng(1).standard_normal((cls.problem.n, 2))


@pytest.mark.usefixtures("parts")
class TestProblem:
    def test_it_agrees_with_the_full_problem(self):
        Y = self.problem.map(self.R)
        assert np.abs(Y.mean(axis=0)).max() < 1e-12
        assert self.problem.variance(self.R) == pytest.approx(self.whole.variance(Y))
        np.testing.assert_allclose(
            self.problem.changes(self.R), self.whole.changes(Y)[self.rows], atol=1e-9
        )

    def test_functions_are_orthonormal_in_laplacian_energy(self):
        edges = self.whole.edges
        F = self.problem.functions
        energy = F.T @ (edges.laplacian(1 / edges.scales) @ F)
        np.testing.assert_allclose(energy, np.eye(self.problem.n), atol=1e-6)

    def test_nearest_combination(self):
        Y = self.problem.map(self.R)
        np.testing.assert_allclose(self.problem.variables(Y), self.R, atol=1e-8)

    def test_lowest_eigenvalues(self):
        """Restricted to combinations, no eigenvalue is below that of the full Laplacian."""
        w = np.random.default_rng(2).uniform(size=self.problem.edges.count)
        found = self.problem.smallest_eigenpairs(w, 4, np.random.default_rng(0))
        L = self.problem.edges.laplacian(w)
        for value, vector in zip(found.values, found.vectors.T, strict=True):
            y = self.problem.map(vector[:, None])[:, 0]
            assert y @ (L @ y) / (y @ y) == pytest.approx(value)
        assert found.values[0] >= np.linalg.eigvalsh(L.toarray())[1] - 1e-12


class TestEstimator:
    X, coordinates = make_swiss_roll(200, height=10, random_state=0)

    def test_near_to_the_full_solution(self):
        full, few = MVU().fit(self.X), MVU(n_landmarks=40).fit(self.X)
        assert few.converged_
        assert few.gap_ <= 0.01
        assert few.variance_ == pytest.approx(full.variance_, rel=0.02)
        assert procrustes(few.embedding_, full.embedding_, "rigid").error < 0.03
        assert procrustes(few.embedding_, self.coordinates, "rigid").error < 0.05
        assert few.multipliers_.shape == (len(few.edges_),)

    def test_without_slack_all_edges_are_kept(self):
        """Including those that were not sampled at first."""
        model = MVU(n_landmarks=30, constraint=EdgeConstraint("at_most", slack=0.0)).fit(self.X)
        assert model.converged_
        full = MVU(constraint="at_most").fit(self.X)
        assert model.variance_ <= full.variance_ * 1.002
        lengths, true = (
            np.linalg.norm(A[model.edges_[:, 0]] - A[model.edges_[:, 1]], axis=1)
            for A in (model.embedding_, self.X)
        )
        assert (lengths <= true * (1 + 0.005 + 6e-4)).all()

    def test_components(self):
        X = np.vstack([self.X[:100], self.X[:60] + 500.0])
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU(n_landmarks=40).fit(X)
        assert np.array_equal(model.component_labels_, np.repeat([0, 1], [100, 60]))
        assert np.isfinite(model.embedding_).all()

    def test_duplicates(self):
        X = np.vstack([self.X[:100], self.X[:30]])
        model = MVU(n_landmarks=40).fit(X)
        assert np.array_equal(model.embedding_[:30], model.embedding_[100:])
        with pytest.raises(ValueError, match=r"n_landmarks=101 must be at most 100 \(the number"):
            MVU(n_landmarks=101).fit(X)

    def test_seeds(self):
        one, two, again = (
            MVU(n_landmarks=25, random_state=seed).fit_transform(self.X) for seed in (1, 2, 1)
        )
        assert np.array_equal(one, again)
        assert not np.array_equal(one, two)


def test_every_component_has_enough_landmarks():
    """So that a small component does not collapse to a point or a line."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 3)), rng.normal(size=(20, 3)) + 50])
    with pytest.warns(DisconnectedGraphWarning):
        model = MVU(n_landmarks=4).fit(X)
    for component in (0, 1):
        assert np.ptp(model.embedding_[model.component_labels_ == component], axis=0).min() > 0.1


def test_status_of_lengths():
    X = make_swiss_roll(120, height=8, random_state=0).X
    assert MVU(n_landmarks=30).fit(X).status_.startswith("lengths are within the slack")
    assert MVU(constraint="at_most").fit(X).status_.startswith("no edge is too long")
    with pytest.warns(ConvergenceWarning):
        few = MVU(n_landmarks=3, constraint=EdgeConstraint(slack=0)).fit(X)
    assert "landmarks can represent" in few.status_
