"""Maximum variance unfolding: the optimum by a conic solver, known maps, evidence, odd input."""

import warnings

import cvxpy
import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import manifoldry as mf
from manifoldry import MVU, Isomap, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import ConvergenceWarning, DisconnectedGraphWarning, RankWarning
from manifoldry.metrics import procrustes
from manifoldry.semidefinite import EdgeConstraint, MethodOfMultipliers


def cloud(n=24, seed=0):
    """A bent sheet with some thickness."""
    rng = np.random.default_rng(seed)
    angle, y = rng.uniform(0, 4, n), rng.uniform(0, 2, n)
    return np.column_stack([2 * np.cos(angle), 2 * np.sin(angle), y, 0.1 * rng.normal(size=n)])


def constraint_of(model):
    return model.constraint if model.constraint != "equal" else EdgeConstraint()


def optimum(model, X):
    """Largest variance minus the cost of slack, and the Gram matrix, by a conic solver."""
    n, (i, j) = len(X), model.edges_.T
    squares = cdist(X, X)[i, j] ** 2
    K = cvxpy.Variable((n, n), PSD=True)
    found = cvxpy.diag(K)[i] + cvxpy.diag(K)[j] - 2 * K[i, j]
    changes = cvxpy.multiply(found - squares, 1 / squares)
    constraint = constraint_of(model)
    t = constraint.tolerance
    low, high = (1 - t) ** 2 - 1, (1 + t) ** 2 - 1
    above, below = changes - high, low - changes
    constraints, price = [cvxpy.sum(K) == 0], 0.0
    if constraint.slack:
        fraction = model.variance_ / len(model.edges_)
        off = cvxpy.sum_squares(cvxpy.pos(above))
        if constraint.kind == "equal":
            off += cvxpy.sum_squares(cvxpy.pos(below))
        price = fraction / (2 * constraint.slack) * off
    else:
        constraints += [above <= 0]
        constraints += [below <= 0] if constraint.kind == "equal" else []
    best = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K) - price), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # to 1e-5 instead of 1e-8
        try:
            best.solve(solver="CLARABEL")
        except cvxpy.SolverError:  # it gives up on some machines where slack is large
            best.solve(solver="SCS", eps=1e-7, max_iters=100_000)
    assert best.status in ("optimal", "optimal_inaccurate")
    return best.value, K.value


VARIANTS = {
    "default": EdgeConstraint(),
    "tolerance": EdgeConstraint(tolerance=0.02),
    "edges": EdgeConstraint(cliques=False),
    "at_most": EdgeConstraint("at_most"),
    "at_most-edges": EdgeConstraint("at_most", cliques=False),
    "at_most-exact": EdgeConstraint("at_most", tolerance=0.0),
    "slack": EdgeConstraint(slack=0.01),
    "slack-edges": EdgeConstraint(slack=0.01, cliques=False, tolerance=0.0),
    "slack-at_most": EdgeConstraint("at_most", slack=0.01),
    "much slack": EdgeConstraint(slack=0.1),
}


class TestOptimum:
    @pytest.mark.parametrize("variant", VARIANTS)
    def test_against_a_conic_solver(self, variant):
        X = cloud()
        model = MVU(n_neighbors=5, constraint=VARIANTS[variant]).fit(X)
        best, K = optimum(model, X)
        assert model.converged_
        assert model.variance_ == pytest.approx(np.trace(K), rel=0.01)
        cost = model.variance_bound_ - model.variance_ * (1 + model.gap_)  # less than none
        assert model.gap_ >= (
            0.0 if constraint_of(model).slack else -2e-3
        )  # with slack all maps are granted
        assert model.variance_bound_ >= best * (1 - 1e-6)
        assert best >= (model.variance_ + cost) * (1 - 2e-3)
        spectrum = np.linalg.eigvalsh(K)[::-1][:2]  # which the variance hardly depends on
        np.testing.assert_allclose(model.eigenvalues_[:2], spectrum, atol=0.01 * best)

    def test_the_map_is_that_of_the_conic_solver(self):
        X = cloud()
        model = MVU(
            n_neighbors=5,
            constraint=EdgeConstraint(tolerance=0.05),
            optimizer=MethodOfMultipliers(tol=1e-4, gap_tol=1e-3),
        ).fit(X)
        _, K = optimum(model, X)
        values, vectors = np.linalg.eigh(K)
        expected = vectors[:, :-3:-1] * np.sqrt(values[:-3:-1])
        assert procrustes(model.embedding_, expected, "rigid").error < 0.02

    def test_duplicates_weigh_more(self):
        """The solution is that of a conic solver with multiplicities as weights."""
        X = np.vstack([cloud(18), cloud(18)[:5]])
        model = MVU(n_neighbors=8).fit(X)
        assert np.array_equal(model.embedding_[:5], model.embedding_[18:])
        i, j = model.edges_.T
        assert model.edges_.max() < 18
        K = cvxpy.Variable((18, 18), PSD=True)
        multiplicity = np.r_[np.full(5, 2.0), np.ones(13)]
        squares = cdist(X, X)[i, j] ** 2
        found = cvxpy.diag(K)[i] + cvxpy.diag(K)[j] - 2 * K[i, j]
        kept = [
            found <= 1.005**2 * squares,
            found >= 0.995**2 * squares,
            multiplicity @ K @ multiplicity == 0,
        ]
        problem = cvxpy.Problem(cvxpy.Maximize(multiplicity @ cvxpy.diag(K)), kept)
        assert model.variance_ == pytest.approx(problem.solve(solver="CLARABEL"), rel=0.01)

    @pytest.mark.parametrize("kind", ["equal", "at_most"])
    @pytest.mark.parametrize("cliques", [True, False])
    def test_properties(self, kind, cliques):
        X = make_swiss_roll(100, random_state=0).X
        model = MVU(constraint=EdgeConstraint(kind, cliques=cliques), n_neighbors=8).fit(X)
        assert np.abs(model.embedding_.mean(axis=0)).max() < 1e-9 * np.abs(X).max()
        centered = X - X.mean(axis=0)
        assert model.variance_ >= (centered**2).sum()
        assert model.eigenvalues_.sum() == pytest.approx(model.variance_, rel=1e-5)
        assert (model.embedding_**2).sum(axis=0) == pytest.approx(model.eigenvalues_[:2])
        assert model.variance_bound_ >= model.variance_ * (1 - 5e-3)
        if kind == "equal":
            assert model.max_edge_error_ <= 0.005 + 1.1 * 5e-4
        # the map alone leaves directions out, so its edges are shorter
        lengths = np.linalg.norm(np.diff(model.embedding_[model.edges_], axis=1)[:, 0], axis=1)
        true = np.linalg.norm(np.diff(X[model.edges_], axis=1)[:, 0], axis=1)
        assert (lengths <= true * (1 + 0.005 + 1.1 * 5e-4)).all()


def zigzag(n=25, seed=0):
    """A chain that winds, of steps of different length, and the lengths."""
    rng = np.random.default_rng(seed)
    lengths = rng.uniform(1.0, 1.3, n - 1)
    turn = np.cumsum(rng.uniform(0.1, 0.5, n - 1))
    steps = lengths[:, None] * np.column_stack([np.cos(turn), np.sin(turn), np.full(n - 1, 0.6)])
    lengths = np.linalg.norm(steps, axis=1)
    return np.vstack([np.zeros(3), np.cumsum(steps, axis=0)]), lengths


class TestKnownMaps:
    @pytest.mark.parametrize("tolerance", [0.0, 0.01])
    def test_a_chain_becomes_a_straight_line(self, tolerance):
        X, lengths = zigzag()
        model = MVU(
            1,
            constraint=EdgeConstraint(cliques=False, tolerance=tolerance),
            optimizer=MethodOfMultipliers(tol=1e-5),
        ).fit(NeighborGraph.build(X, radius=1.55))
        assert np.array_equal(model.edges_, np.column_stack([np.arange(24), np.arange(1, 25)]))
        along = np.abs(model.embedding_[:, 0] - model.embedding_[0, 0])
        expected = (1 + tolerance) * np.r_[0.0, np.cumsum(lengths)]
        np.testing.assert_allclose(along, expected, atol=1e-4 * expected[-1])
        assert model.explained_variance_ratio_[0] > 1 - 1e-6
        assert model.variance_ == pytest.approx(((expected - expected.mean()) ** 2).sum(), rel=1e-4)

    @pytest.mark.parametrize("n", [10, 40])
    def test_a_ring_becomes_a_regular_polygon(self, n):
        angle = 2 * np.pi * np.arange(n) / n
        R, z = n / 6, 0.3 * np.cos(np.pi * np.arange(n))
        X = np.column_stack([R * np.cos(angle), R * np.sin(angle), z])
        length = np.linalg.norm(X[1] - X[0])
        graph = NeighborGraph.build(X, radius=1.05 * length)
        model = MVU(2, constraint=EdgeConstraint(cliques=False, tolerance=0.0)).fit(graph)
        assert len(model.edges_) == n
        radius = length / (2 * np.sin(np.pi / n))
        assert model.variance_ == pytest.approx(n * radius**2, rel=2e-3)
        np.testing.assert_allclose(np.linalg.norm(model.embedding_, axis=1), radius, rtol=0.02)

    def test_multipliers_of_a_chain(self):
        """The multiplier of an edge is the product of the numbers of points on its two sides."""
        n = 12
        X = np.column_stack([np.arange(n) * 1.0, np.zeros(n)])
        model = MVU(
            1,
            constraint=EdgeConstraint(cliques=False, tolerance=0.0),
            optimizer=MethodOfMultipliers(tol=1e-5, gap_tol=1e-4),
        ).fit(NeighborGraph.build(X, radius=1.1))
        i = model.edges_.min(axis=1)
        expected = (i + 1.0) * (n - 1 - i)
        np.testing.assert_allclose(model.multipliers_, expected / expected.mean(), rtol=0.01)

    def test_a_roll_with_a_hole(self):
        """Isomap stretches the map around it."""
        X, coordinates = make_swiss_roll(300, hole=True, random_state=0)
        model = MVU().fit(X)
        ours, theirs = (
            procrustes(Y, coordinates, "rigid").error
            for Y in (model.embedding_, Isomap(2, n_neighbors=6).fit_transform(X))
        )
        assert ours < 0.05
        assert ours < 0.5 * theirs
        assert model.explained_variance_ratio_[:2].sum() > 0.99
        assert model.dimension_hint_ == 2
        assert model.gap_ <= 0.01
        assert model.converged_

    def test_a_rectangle_stays(self):
        """Nothing is to be unfolded, but for the tolerance."""
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(120, 2)) * [3.0, 1.0]
        model = MVU(
            constraint=EdgeConstraint(tolerance=0.0), optimizer=MethodOfMultipliers(gap_tol=0.05)
        ).fit(X)
        assert procrustes(model.embedding_, X, "rigid").error < 0.01

    @pytest.mark.slow
    def test_short_circuits(self):
        """A point half-way between two layers of a roll joins them.

        The edges between layers have the largest multipliers, and lengthen under slack.
        """
        X, coordinates = make_swiss_roll(250, height=8, random_state=0)
        inner = np.argmin(np.hypot(X[:, 0], X[:, 2]) + np.abs(X[:, 1] - np.median(X[:, 1])))
        outwards = X[inner] * [1, 0, 1] / np.hypot(X[inner, 0], X[inner, 2])
        bridged = np.vstack([X, X[inner] + np.pi * outwards])
        clean, firm = MVU().fit(X), MVU().fit(bridged)
        soft = MVU(constraint=EdgeConstraint(slack=0.01)).fit(bridged)
        assert clean.variance_ > soft.variance_ > 1.05 * firm.variance_
        for model in (firm, soft):
            hardest = model.edges_[np.argsort(-np.abs(model.multipliers_))[:3]]
            assert between_layers(hardest, coordinates, X).all()
        assert np.abs(firm.multipliers_).max() > 2 * np.abs(clean.multipliers_).max()
        assert soft.max_edge_error_ > 0.1 > firm.max_edge_error_
        assert soft.mean_edge_error_ < 0.02


def between_layers(edges, coordinates, X):
    """Whether an edge ends at the bridge, or its ends are far nearer in the data than along it."""
    false = (edges == len(X)).any(axis=1)
    i, j = edges[~false].T
    along, across = (np.linalg.norm(A[i] - A[j], axis=1) for A in (coordinates, X))
    false[~false] = along > 3 * across
    return false


class TestSearch:
    X = make_swiss_roll(50, height=4, random_state=0).X

    def test_all_starts_lead_to_one_variance(self):
        start = np.random.default_rng(0).standard_normal((50, 2))
        variances = []
        for init in ("isomap", "random", "spectral", start, mf.PCA()):
            model = MVU(optimizer=MethodOfMultipliers(init=init)).fit(self.X)
            assert model.converged_
            variances.append(model.variance_)
        assert variances[1:] == pytest.approx(4 * variances[:1], rel=0.01)

    def test_order_of_rows(self):
        order = np.random.default_rng(0).permutation(50)
        options = {"constraint": EdgeConstraint(tolerance=0.01)}
        one, two = (MVU(**options).fit(A) for A in (self.X, self.X[order]))
        assert one.variance_ == pytest.approx(two.variance_, rel=5e-3)
        error = procrustes(two.embedding_, one.embedding_[order], "rigid").error
        assert error < 0.01

    @pytest.mark.parametrize("steps", [1, 3, 40])
    def test_too_few_steps_are_reported(self, steps):
        message = rf"did not converge: max_iter={steps} steps were taken.*raise .*max_iter"
        with pytest.warns(ConvergenceWarning, match=message):
            model = MVU(max_iter=steps).fit(self.X)
        assert model.n_iter_ == steps
        assert not model.converged_
        assert model.gap_ == model.variance_bound_ == np.inf
        assert np.isfinite(model.embedding_).all()

    @pytest.mark.parametrize(
        "options", [{}, {"n_landmarks": 30, "constraint": EdgeConstraint(slack=0.0)}]
    )
    def test_steps_are_counted_over_all_rounds(self, options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = MVU(max_iter=700, **options).fit(self.X)
        assert model.n_iter_ <= 700
        assert model.rounds_["steps"][-1] == model.n_iter_
        assert (np.diff(model.rounds_["steps"]) > 0).all()
        assert model.rounds_["variance"][-1] == pytest.approx(model.variance_, rel=1e-9)

    def test_an_unreachable_gap_is_reported(self):
        with pytest.warns(
            ConvergenceWarning,
            match=r"proved only to be within a fraction of .*, more than gap_tol=1e-12",
        ):
            model = MVU(
                constraint=EdgeConstraint(tolerance=0.01),
                optimizer=MethodOfMultipliers(gap_tol=1e-12),
            ).fit(cloud(18))
        assert np.isfinite(model.gap_)

    def test_lengths_that_no_map_keeps_are_reported(self):
        """A triangle with sides 1, 1 and 3; and paths along streets are no straight lines."""
        D = np.array([[0, 1, 3], [1, 0, 1], [3, 1, 0.0]])
        for options, data in (
            ({"metric": "precomputed", "n_neighbors": 2, "n_components": 1}, D),
            ({"metric": "cityblock"}, self.X),
        ):
            with pytest.warns(ConvergenceWarning, match=r"no map keeps these lengths; .*slack"):
                model = MVU(**options).fit(data)
            assert not model.converged_
            assert np.isfinite(model.embedding_).all()

    @pytest.mark.parametrize("constraint", ["at_most", EdgeConstraint(slack=0.05)])
    @pytest.mark.parametrize("metric", ["cityblock", "chebyshev"])
    def test_other_metrics(self, constraint, metric):
        model = MVU(metric=metric, constraint=constraint).fit(self.X)
        assert model.converged_
        D = cdist(self.X, self.X, metric)[tuple(model.edges_.T)]
        found = np.linalg.norm(np.diff(model.embedding_[model.edges_], axis=1)[:, 0], axis=1)
        if constraint == "at_most":
            assert (found <= D * 1.006).all()
        assert np.isfinite(model.transform(self.X[:5] + 0.1)).all()

    def test_a_fitted_model_is_a_start(self):
        first = MVU().fit(self.X)
        for scale in (1.0, 1000.0):
            again = MVU(optimizer=MethodOfMultipliers(init=first.embedding_)).fit(self.X * scale)
            assert again.n_iter_ <= 1.2 * first.n_iter_
            assert again.variance_ / scale**2 == pytest.approx(first.variance_, rel=0.01)

    def test_max_iter_replaces_the_optimizer_s(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=7 steps"):
            MVU(optimizer=MethodOfMultipliers(max_iter=7)).fit(self.X)
        with pytest.warns(ConvergenceWarning, match="max_iter=5 steps"):
            MVU(optimizer=MethodOfMultipliers(max_iter=7), max_iter=5).fit(self.X)

    def test_a_given_map_is_a_start(self):
        """Turned along its axes, and scaled to the lengths of edges."""
        start, seen = np.random.default_rng(1).standard_normal((50, 2)), []
        MVU(
            optimizer=MethodOfMultipliers(init=start),
            callback=lambda it: seen.append(it.embedding) or True,
        ).fit(self.X)
        assert procrustes(seen[0], start, "similarity").error < 0.01

    def test_a_start_that_says_nothing(self):
        """One place per component."""
        X = np.vstack([self.X[:25], self.X[:20] + 1000.0])
        start = np.repeat([[0.0, 1.0], [5.0, 2.0]], [25, 20], axis=0)
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU(optimizer=MethodOfMultipliers(init=start)).fit(X)
        assert model.converged_

    def test_progress(self, capsys):
        MVU(verbose=True).fit(self.X)
        out, err = capsys.readouterr()
        assert out == ""
        assert "variance" in err
        assert "violation" in err


def two_components():
    """Sheets of different size, far apart."""
    one, two = (make_swiss_roll(n, height=4, random_state=n).X for n in (50, 40))
    return np.vstack([one, two + np.array([200.0, 0.0, 0.0])])


class TestLayout:
    X = two_components()

    def test_refused(self):
        with pytest.raises(ValueError, match=r"2 connected components.*raise n_neighbors"):
            MVU(disconnected="error", callback=pytest.fail).fit(self.X)

    def test_apart_as_alone(self):
        options = {"constraint": EdgeConstraint(tolerance=0.01)}
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU(**options).fit(self.X)
        assert np.array_equal(model.component_labels_, np.repeat([0, 1], [50, 40]))
        variance = 0.0
        for rows in (slice(50), slice(50, None)):
            alone = MVU(**options).fit(self.X[rows])
            variance += alone.variance_
            error = procrustes(model.embedding_[rows], alone.embedding_, "rigid").error
            assert error < 0.02
        assert model.variance_ == pytest.approx(variance, rel=5e-3)
        apart = model.embedding_[:50].mean(axis=0) - model.embedding_[50:].mean(axis=0)
        true = self.X[:50].mean(axis=0) - self.X[50:].mean(axis=0)
        assert np.linalg.norm(apart) == pytest.approx(np.linalg.norm(true))

    def test_joined(self):
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU(disconnected="join").fit(self.X)
        assert not model.component_labels_.any()
        assert model.converged_
        # held together by a bridge as long as the gap
        gap = cdist(self.X[:50], self.X[50:]).min()
        assert cdist(model.embedding_[:50], model.embedding_[50:]).min() <= 1.02 * gap

    def test_largest(self):
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU(disconnected="largest").fit(self.X)
        assert np.isnan(model.embedding_[50:]).all()
        alone = MVU().fit(self.X[:50])
        assert model.variance_ == pytest.approx(alone.variance_, rel=0.01)
        assert np.isfinite(model.transform(self.X[:5] + 0.1)).all()

    def test_all_rows_of_the_largest_coincide(self):
        rng = np.random.default_rng(0)
        X = np.vstack([np.zeros((20, 3)), 100 + rng.standard_normal((10, 3))])
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU().fit(X)
        assert model.rank_ >= 3
        with (
            pytest.warns(DisconnectedGraphWarning),
            pytest.raises(ValueError, match="each of the 20 rows coincides with all its neigh"),
        ):
            MVU(disconnected="largest").fit(X)

    def test_many_small_ones(self):
        """Pairs, and single points beside them."""
        X = np.array([[0.0], [1.0], [100.0], [101.5], [300.0]])
        graph = NeighborGraph.build(X, radius=2.0)
        with pytest.warns(DisconnectedGraphWarning):
            model = MVU(1, constraint=EdgeConstraint(tolerance=0.0)).fit(graph)
        lengths = np.abs(np.diff(model.embedding_[:, 0]))
        assert lengths[0] == pytest.approx(1.0, rel=1e-3)
        assert lengths[2] == pytest.approx(1.5, rel=1e-3)


class TestExtension:
    def test_new_points_of_a_roll(self):
        X, coordinates = make_swiss_roll(400, height=8, random_state=0)
        model = MVU().fit(X[:300])
        assert np.array_equal(model.transform(X[:300]), model.embedding_)
        motion = procrustes(model.embedding_, coordinates[:300], "rigid")
        placed = motion.alignment.apply(model.transform(X[300:]))
        off = np.linalg.norm(placed - coordinates[300:], axis=1)
        spacing = NeighborGraph.build(X[:300], 6).distances.mean()
        assert np.median(off) < 0.5 * spacing

    def test_inverse(self):
        X = make_swiss_roll(250, height=8, random_state=0).X
        model = MVU().fit(X)
        back = model.inverse_transform(model.embedding_)
        assert np.sqrt(((back - X) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum()) < 0.05

    def test_distances_give_the_map_of_the_data(self):
        X = make_swiss_roll(130, random_state=0).X
        D = cdist(X, X)
        data, distances = MVU().fit(X[:120]), MVU(metric="precomputed").fit(D[:120, :120])
        assert distances.variance_ == pytest.approx(data.variance_, rel=0.01)
        assert procrustes(distances.embedding_, data.embedding_, "rigid").error < 0.02
        placed = distances.transform(D[120:, :120])
        expected = data.transform(X[120:])
        motion = procrustes(distances.embedding_, data.embedding_, "rigid").alignment
        off = np.linalg.norm(motion.apply(placed) - expected, axis=1)
        assert np.median(off) < 0.3 * NeighborGraph.build(X, 6).distances.mean()

    def test_a_sparse_graph_of_distances(self):
        X = make_swiss_roll(150, random_state=0).X
        graph = NeighborGraph.build(X, 10)
        D = sparse.csr_array(graph.matrix())
        D = D.maximum(D.T)
        model = MVU(metric="precomputed").fit(D)
        expected = MVU(constraint=EdgeConstraint(cliques=False), n_neighbors=6).fit(X)
        assert model.variance_ == pytest.approx(expected.variance_, rel=0.01)
        with pytest.raises(ValueError, match="cliques=False"):
            MVU(metric="precomputed", constraint=EdgeConstraint(cliques=True)).fit(D)

    def test_a_ready_graph(self):
        X = make_swiss_roll(60, height=6, random_state=0).X
        given, plain = MVU().fit(NeighborGraph.build(X, 6)), MVU(n_neighbors=6).fit(X)
        assert given.variance_ == pytest.approx(plain.variance_, rel=1e-6)


class TestEvidence:
    def test_coordinates_beyond_the_rank(self):
        X = np.column_stack([np.arange(20.0), np.zeros(20)])
        with pytest.warns(RankWarning, match="1 of n_components=2 coordinates are zero"):
            model = MVU(2).fit(X)
        assert model.rank_ == 1
        assert not model.embedding_[:, 1].any()

    def test_the_rank_does_not_count_noise(self):
        X = make_swiss_roll(150, random_state=0).X
        fractions = MVU().fit(X).explained_variance_ratio_
        assert (fractions > 1e-7).all()
        assert fractions.sum() == pytest.approx(1.0)

    def test_more_coordinates_show_more(self):
        X = make_swiss_roll(60, height=6, random_state=0).X
        errors = [MVU(k).fit(X).map_edge_error_ for k in (1, 2, 3)]
        assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize(
    ("make", "name", "value", "error", "match"),
    [
        (EdgeConstraint, "kind", "exact", ValueError, "kind='exact' must be one of 'equal'"),
        (EdgeConstraint, "tolerance", -0.1, ValueError, "tolerance=-0.1 must be at least 0"),
        (EdgeConstraint, "tolerance", 1.0, ValueError, "tolerance=1 must be less than 1"),
        (EdgeConstraint, "tolerance", np.nan, ValueError, "tolerance=nan must be finite"),
        (EdgeConstraint, "slack", -1, ValueError, "slack=-1 must be at least 0"),
        (EdgeConstraint, "slack", "some", TypeError, "slack='some' must be a number"),
        (EdgeConstraint, "cliques", "yes", TypeError, "cliques='yes' must be True, False or None"),
        (MethodOfMultipliers, "tol", 0, ValueError, "tol=0 must be greater than 0"),
        (MethodOfMultipliers, "tol", "small", TypeError, "tol='small' must be a number"),
        (MethodOfMultipliers, "gap_tol", 0, ValueError, "gap_tol=0 must be greater than 0"),
        (MethodOfMultipliers, "max_iter", 0, ValueError, "max_iter=0 must be at least 1"),
    ],
)
def test_wrong_options_are_refused(make, name, value, error, match):
    with pytest.raises(error, match=match):
        make(**{name: value})
