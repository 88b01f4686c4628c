"""Following minimizers: the path, its record and the curvature at its steps."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from manifoldry.objectives import elastic
from manifoldry.objectives.bifurcation import Bifurcation
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.transformed import Boxed, Resized
from manifoldry.optimize import (
    LBFGS,
    EarlyExaggeration,
    Homotopy,
    HomotopyRun,
    Path,
    PathStep,
    SpectralDirection,
    Stopping,
)
from manifoldry.optimize.homotopy import rank
from manifoldry.optimize.saddle import smallest_curvature

N = 12
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 3)) * [3.0, 1.5, 0.5]
W = np.exp(-squareform(pdist(POINTS, "sqeuclidean")))
np.fill_diagonal(W, 0.0)
W /= W.sum()
TIGHT = LBFGS(
    SpectralDirection(),  # without it 500 steps do not suffice
    stopping=Stopping(tol=0, value_tol=0, gradient_tol=1e-10, max_iter=500),
)


def lap(A):
    return np.diag(A.sum(axis=1)) - A


def dense_hessian(weight, Y):
    """The published Hessian of the elastic embedding with uniform repulsion, (n·d, n·d)."""
    R = (1 - np.eye(N)) / (N * (N - 1))
    K = R * np.exp(-squareform(pdist(Y, "sqeuclidean")))
    steps = Y[:, None] - Y
    H = 4 * np.einsum("nm,ij->nimj", lap(W - weight * K), np.eye(Y.shape[1]))
    for i, j in np.ndindex(Y.shape[1], Y.shape[1]):
        H[:, i, :, j] += 8 * weight * lap(K * steps[:, :, i] * steps[:, :, j])
    return H.reshape(Y.size, Y.size)


def finite_hessian(objective, Y, h=1e-5):
    """By differences of the gradient."""
    rows = []
    for k in range(Y.size):
        step = np.zeros(Y.size)
        step[k] = h
        step = step.reshape(Y.shape)
        ends = [objective.value_and_gradient(Y + s * step)[1].ravel() for s in (1, -1)]
        rows.append((ends[0] - ends[1]) / (2 * h))
    H = np.array(rows)
    return (H + H.T) / 2


def without_rigid_motions(H, Y):
    """Eigenvalues on the complement of translations and, for two columns, the rotation."""
    n, d = Y.shape
    motions = [np.outer(np.ones(n), axis).ravel() for axis in np.eye(d)]
    centered = Y - Y.mean(axis=0)
    if d == 2:
        motions.append((centered @ [[0, 1], [-1, 0]]).ravel())
    complement = np.linalg.svd(np.array(motions))[2][len(motions) :]
    return np.linalg.eigvalsh(complement @ H @ complement.T)


def minimizer(weight, d=2, start=None):
    Y = RNG.normal(size=(N, d)) if start is None else start
    return TIGHT.minimize(elastic(W, weight=weight), Y).embedding


class TestCurvature:
    @pytest.mark.parametrize("d", [1, 2])
    @pytest.mark.parametrize("weight", [2.0, 100.0])
    def test_at_a_minimum(self, d, weight):
        Y = minimizer(weight, d)
        found = smallest_curvature(elastic(W, weight=weight), Y + 7.0).value
        expected = without_rigid_motions(dense_hessian(weight, Y), Y)[0]
        assert expected > 0
        assert np.isclose(found, expected, rtol=1e-3)

    def test_at_a_saddle(self):
        """A line in the plane, when the map should have opened: the curvature is negative."""
        line = np.hstack([minimizer(20.0, 1), np.zeros((N, 1))])
        found = smallest_curvature(elastic(W, weight=20.0), line).value
        expected = without_rigid_motions(dense_hessian(20.0, line), line)[0]
        assert expected < 0
        assert np.isclose(found, expected, rtol=1e-3)

    def test_it_vanishes_where_the_map_opens(self):
        """At the collapsed map the smallest curvature is that of attraction less repulsion."""
        critical = Bifurcation.of(elastic(W), 1).weight
        point = np.zeros((N, 1))
        below, at, above = (
            smallest_curvature(elastic(W, weight=s * critical), point).value
            for s in (0.9, 1.0, 1.1)
        )
        assert below > 0 > above
        assert abs(at) < 1e-4 * below

    @pytest.mark.parametrize("wrap", [lambda o: o, lambda o: Resized(o, 1.5)])
    def test_a_box_holds_the_map_in_its_place(self, wrap):
        """Moving and turning change the value there, so they count."""
        objective = wrap(
            Boxed(UKRObjective(POINTS, sparse.csr_array(1 - np.eye(N))), half_width=1.5)
        )
        Z = 0.3 * RNG.normal(size=(N, 2))
        expected = np.linalg.eigvalsh(finite_hessian(objective, Z))[0]
        assert np.isclose(smallest_curvature(objective, Z).value, expected, rtol=1e-2)

    def test_one_coordinate_of_two_points(self):
        pair = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
        # E = d² + e·exp(−d²) has E″ = 4 at d = 1; a step of both ends by 1/√2 changes d by √2.
        assert np.isclose(smallest_curvature(pair, np.array([[0.0], [1.0]])).value, 8.0, rtol=1e-5)


def run_of(homotopy, start=None, callback=None, begin=None):
    objective = elastic(W)
    Y = 0.1 * RNG.normal(size=(N, 2)) if start is None else start
    rng = np.random.default_rng(1)
    return HomotopyRun(homotopy, objective.with_weight, Y, LBFGS(), rng, callback, begin)


class TestHomotopy:
    def test_values_are_evenly_spaced_by_ratio(self):
        values = Homotopy(n_steps=5).values_between(0.1, 1000.0)
        assert np.allclose(values, [0.1, 1.0, 10.0, 100.0, 1000.0])
        assert values[-1] == 1000.0

    def test_given_values_end_where_they_should(self):
        assert Homotopy(values=[1, 2]).values_between(0.1, 3.0).tolist() == [1, 2, 3]
        assert Homotopy(values=[1, 3]).values_between(0.1, 3.0).tolist() == [1, 3]
        assert Homotopy(values=()).values_between(0.1, 3.0).tolist() == [3]

    @pytest.mark.parametrize(
        ("name", "value", "error"),
        [
            ("n_steps", 1, ValueError),
            ("n_steps", 2.5, TypeError),
            ("max_iter", 0, ValueError),
            ("tol", -1.0, ValueError),
            ("jitter", "some", TypeError),
            ("memory", 0, ValueError),
            ("values", [1.0, -1.0], ValueError),
            ("values", ["low"], TypeError),
            ("optimizer", "newton", ValueError),
            ("optimizer", Homotopy(), ValueError),
            ("optimizer", "homotopy", ValueError),
        ],
    )
    def test_what_makes_none(self, name, value, error):
        with pytest.raises(error, match=f"{name}="):
            Homotopy(**{name: value})

    def test_each_step_begins_where_the_last_ended(self):
        """But for the jitter; and the last is searched with the optimizer's own care."""
        seen, values = [], []
        homotopy = Homotopy(n_steps=4, max_iter=7, jitter=1e-6)
        run = run_of(homotopy, callback=seen.append, begin=values.append)
        solution = homotopy.follow(run, homotopy.values_between(0.5, 50.0))
        assert np.allclose(values, [0.5, 2.32, 10.77, 50.0], rtol=1e-2)
        starts = [i for i, it in enumerate(seen) if it.step.iteration == 0]
        for i in starts[1:]:
            gap = np.abs(seen[i].embedding - seen[i - 1].embedding).max()
            assert 0 < gap < 1e-4
        lengths = np.diff([*starts, len(seen)]) - 1
        assert (lengths[:-1] <= 7).all()
        assert lengths[-1] > 7
        assert np.array_equal(solution.embedding, run.path.embeddings[-1])
        assert solution.converged

    def test_noise_is_a_fraction_of_the_extent(self):
        Y, homotopy = RNG.normal(size=(N, 2)), Homotopy(jitter=1e-3)
        optimizer = LBFGS(stopping=Stopping(max_iter=1))

        def noise_of(Y):
            seen = []
            family = partial(elastic, W, "uniform")
            rng = np.random.default_rng(1)
            HomotopyRun(homotopy, family, Y, optimizer, rng, seen.append).advance(1.0)
            return seen[0].embedding - Y

        noise = noise_of(Y)
        assert 1e-3 < np.abs(noise).max() / np.abs(Y).max() < 1e-2
        np.testing.assert_allclose(noise_of(100 * Y) / 100, noise, rtol=1e-6)
        np.testing.assert_allclose(noise_of(Y + 100.0), noise, rtol=1e-6)

    def test_every_step_is_a_minimizer(self):
        homotopy = Homotopy(n_steps=6, tol=1e-9, max_iter=500)
        run = run_of(homotopy)
        homotopy.follow(run, homotopy.values_between(0.5, 50.0))
        for step, Y in zip(run.path.steps, run.path.embeddings, strict=True):
            value, G = elastic(W, weight=step.parameter).value_and_gradient(Y)
            assert np.isclose(value, step.value)
            assert np.abs(G).max() < 1e-4

    @pytest.mark.parametrize("jitter", [0.0, 1e-6])
    def test_lines_open(self, jitter):
        """A gradient alone would keep the second coordinate at zero for ever."""
        line = np.hstack([minimizer(1.0, 1), np.zeros((N, 1))])
        homotopy = Homotopy(n_steps=4, jitter=jitter)
        run = run_of(homotopy, start=line)
        homotopy.follow(run, homotopy.values_between(20.0, 50.0))
        assert (run.path.column("rank") == 2).all()

    def test_curvature_where_asked_for(self):
        for curvature in (False, True):
            homotopy = Homotopy(n_steps=3, tol=1e-8, curvature=curvature)
            run = run_of(homotopy)
            homotopy.follow(run, homotopy.values_between(5.0, 50.0))
            found = run.path.column("curvature")
            if not curvature:
                assert np.isnan(found).all()
                continue
            for value, step, Y in zip(found, run.path.steps, run.path.embeddings, strict=True):
                H = dense_hessian(step.parameter, Y)
                assert np.isclose(value, without_rigid_motions(H, Y)[0], rtol=1e-2)

    def test_an_interrupt_ends_it_with_what_there_is(self):
        def stop(iterate):
            if len(run.path) == 2 and iterate.step.iteration == 1:
                raise KeyboardInterrupt

        homotopy = Homotopy(n_steps=6)
        run = run_of(homotopy, callback=stop)
        solution = homotopy.follow(run, homotopy.values_between(0.5, 50.0))
        assert solution.interrupted
        assert len(run.path) == 3
        assert not run.path.steps[-1].converged

    def test_an_interrupt_after_a_saddle_keeps_what_was_found_below_it(self, monkeypatch):
        looked_at = []

        def curvature(objective, Y, **more):
            looked_at.append(objective.value(Y))
            if len(looked_at) == 2:
                raise KeyboardInterrupt
            return smallest_curvature(objective, Y, **more)

        monkeypatch.setattr("manifoldry.optimize.homotopy.smallest_curvature", curvature)
        line = np.hstack([minimizer(20.0, 1), np.zeros((N, 1))])
        solution = run_of(Homotopy(jitter=0.0, curvature=True), start=line).advance(20.0)
        assert solution.interrupted
        assert looked_at[1] < looked_at[0]
        assert solution.value == pytest.approx(looked_at[1])


def step(parameter, rank=2):
    return PathStep(parameter, -parameter, rank, np.nan, 1, True)


class TestPath:
    @pytest.mark.parametrize("n_steps", [1, 2, 3, 10, 33, 100])
    @pytest.mark.parametrize("room", [2, 3, 5, 16])
    def test_maps_fit_the_budget_and_are_spread_evenly(self, n_steps, room):
        path = Path(budget=room * 10 * 8)
        for i in range(n_steps):
            path.record(step(float(i)), np.full((5, 2), float(i)))
            held = sum(Y.nbytes for Y in path.embeddings)
            assert held <= path.budget
        assert len(path) == n_steps
        assert path.kept[0] == 0
        assert path.kept[-1] == n_steps - 1
        assert [Y[0, 0] for Y in path.embeddings] == path.kept
        gaps = np.diff(path.kept)[:-1]  # the last map is kept whatever its number
        assert len(set(gaps.tolist())) <= 1
        if n_steps >= room > 2:
            assert len(path.kept) > room / 2

    def test_one_map_is_kept_however_large(self):
        path = Path(budget=1)
        for i in range(5):
            path.record(step(float(i)), np.full((5, 2), float(i)))
        assert path.kept == [0, 4]

    def test_maps_are_copies(self):
        path, Y = Path(), np.zeros((3, 1))
        path.record(step(1.0), Y)
        Y[:] = 7
        assert not path.embeddings[0].any()

    def test_nearest_by_ratio(self):
        path = Path()
        for value in (1.0, 100.0):
            path.record(step(value), np.full((2, 1), value))
        assert path.embedding_at(9.0)[0, 0] == 1.0
        assert path.embedding_at(11.0)[0, 0] == 100.0
        assert path.embedding_at(-5.0)[0, 0] == 1.0

    def test_bifurcations(self):
        path = Path()
        for value, r in [(1.0, 0), (2.0, 1), (3.0, 1), (4.0, 2)]:
            path.record(step(value, r), np.zeros((2, 1)))
        assert path.bifurcations == [(2.0, 1), (4.0, 2)]

    def test_columns(self):
        path = Path()
        for value in (1.0, 2.0):
            path.record(step(value), np.zeros((2, 1)))
        assert path.column("value").tolist() == [-1.0, -2.0]

    def test_transformed(self):
        path = Path()
        for value in (1.0, 2.0):
            path.record(step(value), np.ones((2, 1)))
        seen = path.transformed(lambda p, Y: 10 * p * Y)
        assert [Y[0, 0] for Y in seen.embeddings] == [10.0, 20.0]
        assert path.embeddings[0][0, 0] == 1.0

    def test_rank(self):
        Y = RNG.normal(size=(50, 3)) + 100.0
        assert rank(Y) == 3
        assert rank(Y * [1, 1, 1e-6]) == 2
        assert rank(Y * 0) == 0
        assert rank(1e-5 * (Y - 100)) == 0


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"factor": 0}, ValueError, "factor=0 must be greater than 0"),
        ({"factor": "much"}, TypeError, "factor='much' must be a number"),
        ({"n_iter": -1}, ValueError, "n_iter=-1 must be at least 0"),
        ({"n_iter": 1.5}, TypeError, "n_iter=1.5 must be a whole number"),
    ],
)
def test_wrong_early_exaggeration(options, error, match):
    with pytest.raises(error, match=match):
        EarlyExaggeration(**options)
