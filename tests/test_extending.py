"""docs/extending.md, executed: its modules are written to files and used as a contributor would."""

import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import check_estimator

import manifoldry as mf
from manifoldry.datasets import make_strip, make_swiss_roll
from manifoldry.eigen import SpectralProblem
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.extension import Extension
from manifoldry.iterative import NeighborEmbedder
from manifoldry.objectives import GaussianKernel, Joint, Pairwise, PerPoint, Unnormalized
from manifoldry.optimize import (
    LBFGS,
    ConjugateGradient,
    DiagonalHessian,
    GradientDescent,
    Heat,
    Jacobi,
    SpectralDirection,
)
from manifoldry.spectral import PosedOnGraph, SpectralEmbedder

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
MODULES = {name.removesuffix(".py"): code for name, code in BLOCKS if name.endswith(".py")}
USES = [code for name, code in BLOCKS if name == "use"]

STRIP, PLACES = make_strip(300, aspect=3.5, random_state=0)
NEW, _ = make_strip(60, aspect=3.5, random_state=1)


@pytest.fixture(scope="module", autouse=True)
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extending")
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code)
    sys.path.insert(0, str(folder))
    yield {name: importlib.import_module(name) for name in MODULES}
    sys.path.remove(str(folder))
    for name in MODULES:
        del sys.modules[name]


def test_modules_have_at_most_forty_lines():
    added = {"adjacency", "commute_time", "cauchy_pca", "exponential", "t_elastic"}
    others = {"block_krylov", "local_weights", "nearest", "charbonnier", "raw_stress"}
    assert set(MODULES) == added | others | {"metric_mds"}
    for name, code in MODULES.items():
        written = [line for line in code.splitlines() if line.strip()]
        assert len(written) <= 40, f"{name} has {len(written)} lines"


@pytest.mark.parametrize("code", USES, ids=lambda code: code.split()[1])
def test_the_uses_run(code):
    exec(compile(code, str(PAGE), "exec"), {})


class TestRawStress:
    """An objective with value and gradient only."""

    @pytest.fixture
    def objective(self, modules):
        truth = np.random.default_rng(0).normal(size=(12, 2))
        return modules["raw_stress"].RawStress(cdist(truth, truth))

    def test_gradient(self, objective):
        Y = np.random.default_rng(1).normal(size=(12, 2))
        slope = approx_fprime(Y.ravel(), lambda y: objective.value(y.reshape(12, 2)))
        np.testing.assert_allclose(objective.value_and_gradient(Y)[1].ravel(), slope, atol=1e-4)

    @pytest.mark.parametrize("optimizer", [LBFGS(), ConjugateGradient(), GradientDescent()])
    def test_searches_without_a_filter(self, objective, optimizer):
        start = np.random.default_rng(1).normal(size=(12, 2))
        assert optimizer.minimize(objective, start).value < 0.1 * objective.value(start)

    @pytest.mark.parametrize(
        ("filter", "missing"),
        [
            (SpectralDirection(), "attraction"),
            (Jacobi(), "attraction"),
            (Heat(), "attraction"),
            (DiagonalHessian(), "diagonal_curvature"),
        ],
        ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
    )
    def test_filters_say_what_is_missing(self, objective, filter, missing):
        with pytest.raises(NotImplementedError, match=f"RawStress does not define {missing}"):
            LBFGS(filter).minimize(objective, np.random.default_rng(1).normal(size=(12, 2)))


def test_metric_mds_keeps_the_distances_of_training_and_new_points(modules):
    X = np.random.default_rng(0).normal(size=(40, 2)) @ np.array([[1.0, 0, 0.5], [0, 1, -0.5]])
    model = modules["metric_mds"].MetricMDS().fit(X[:30])
    Y = np.vstack([model.embedding_, model.transform(X[30:])])
    np.testing.assert_allclose(cdist(Y, Y), cdist(X, X), atol=1e-4)
    roll = make_swiss_roll(100, random_state=0).X
    model = modules["metric_mds"].MetricMDS().fit(roll)
    start = modules["raw_stress"].RawStress(cdist(roll, roll)).value(mf.PCA(2).fit_transform(roll))
    assert model.converged_
    assert model.loss_ < 0.9 * start


def test_every_method_passes_scikit_learn_s_checks(modules):
    check_estimator(modules["adjacency"].Adjacency())
    check_estimator(modules["cauchy_pca"].CauchyPCA())  # that of CommuteTime is on the page
    check_estimator(modules["t_elastic"].TElasticEmbedding(max_iter=3))
    check_estimator(modules["metric_mds"].MetricMDS(max_iter=3))
    regressor = modules["local_weights"].LocalWeights()
    check_estimator(mf.LLE(extension=regressor, inverse=regressor))
    check_estimator(mf.LaplacianEigenmaps(eigen_solver=modules["block_krylov"].BlockKrylov()))


def test_commute_times_are_those_of_the_pseudo_inverse(modules):
    X = STRIP[:40]
    model = modules["commute_time"].CommuteTime(39, n_neighbors=6, eigen_solver="dense")
    W = model.pose(X).W.toarray()
    assert connected_components(W)[0] == 1
    L = np.linalg.pinv(np.diag(W.sum(axis=1)) - W, 1e-12, hermitian=True)
    expected = W.sum() * (np.diag(L)[:, None] + np.diag(L) - 2 * L)
    Y = model.fit(X).embedding_
    np.testing.assert_allclose(((Y[:, None] - Y) ** 2).sum(axis=2), expected, atol=1e-8 * W.sum())


def test_the_kernel_method_is_scikit_learn_s_kernel_pca(modules):
    def cauchy(x, y):
        return 1 / (1 + ((x - y) ** 2).sum())

    theirs = KernelPCA(2, kernel=cauchy).fit(STRIP)
    ours = modules["cauchy_pca"].CauchyPCA(2).fit(STRIP)
    for X in (STRIP, NEW):
        np.testing.assert_allclose(
            np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-9
        )


def test_both_spectral_methods_can_be_made_non_redundant(modules):
    width = np.cos(np.pi * PLACES[:, 1])
    for model in (
        modules["commute_time"].CommuteTime(n_neighbors=10),
        modules["cauchy_pca"].CauchyPCA(),
    ):
        plain = clone(model).fit_transform(STRIP)
        found = mf.NonRedundant(model).fit_transform(STRIP)
        assert abs(np.corrcoef(plain[:, 1], width)[0, 1]) < 0.5
        assert abs(np.corrcoef(found[:, 1], width)[0, 1]) > 0.9


@pytest.mark.parametrize(
    ("name", "cls"), [("commute_time", "CommuteTime"), ("cauchy_pca", "CauchyPCA")]
)
def test_new_points_and_the_inverse_of_spectral_methods(modules, name, cls):
    model = getattr(modules[name], cls)().fit(STRIP)
    np.testing.assert_array_equal(model.transform(STRIP[:9]), model.embedding_[:9])
    assert model.score(NEW) > 0.5


def test_the_loss_has_the_gradient_new_points_and_a_homotopy(modules):
    model = modules["t_elastic"].TElasticEmbedding(weight=5.0, optimizer="homotopy").fit(STRIP[:80])
    weights = [step.parameter for step in model.path_.steps]
    assert model.bifurcation_.weight < weights[0] < weights[-1] == 5.0
    Y, step = model.embedding_, 1e-6 * np.eye(1, 160, 7).reshape(80, 2)
    value, slope = (
        model.objective_.value,
        model.objective_.value_and_gradient(Y + 0.1)[1].ravel()[7],
    )
    numeric = (value(Y + 0.1 + step) - value(Y + 0.1 - step)) / 2e-6
    np.testing.assert_allclose(numeric, slope, atol=1e-7)
    assert model.score(NEW) > 0.5


@pytest.mark.parametrize("method", [mf.LaplacianEigenmaps, mf.LTSA, mf.Isomap, mf.KernelPCA])
def test_the_eigensolver_agrees_with_the_dense_one(modules, method):
    X = make_swiss_roll(300, random_state=0).X
    solver = modules["block_krylov"].BlockKrylov(n_blocks=60)
    found, dense = method(eigen_solver=solver).fit(X), method(eigen_solver="dense").fit(X)
    np.testing.assert_allclose(found.eigenvalues_, dense.eigenvalues_, rtol=1e-6, atol=1e-10)
    scale = np.abs(dense.embedding_).max()
    np.testing.assert_allclose(found.embedding_, dense.embedding_, atol=1e-4 * scale)


def test_the_rule_keeps_training_points_and_predicts_new_ones(modules):
    roll = make_swiss_roll(500, random_state=0)
    rule = modules["local_weights"].LocalWeights()
    model = mf.Isomap(extension=rule, inverse=rule).fit(roll.X[:400])
    own = mf.Isomap().fit(roll.X[:400])
    scale = own.embedding_.std()
    assert np.abs(model.transform(roll.X[400:]) - own.transform(roll.X[400:])).mean() < 0.1 * scale
    means = mf.Isomap(inverse=KNeighborsRegressor(8)).fit(roll.X[:400])
    held_out = own.transform(roll.X[400:])
    errors = [np.abs(m.inverse_transform(held_out) - roll.X[400:]).mean() for m in (model, means)]
    assert errors[0] < 0.8 * errors[1]  # linear weights follow a slope, means do not


TWO = np.vstack([STRIP[:150], STRIP[150:] + 20.0])


def embedded_by(modules, data, **params):
    method = modules["commute_time"].CommuteTime(n_neighbors=10, **params)
    return mf.NonRedundant(method, criterion="gradient").fit(data)


def test_non_redundant_coordinates_of_two_components_extend_exactly(modules):
    with pytest.warns(DisconnectedGraphWarning):
        model = embedded_by(modules, TWO)
    assert set(model.component_labels_) == {0, 1}
    assert model.extension_error(TWO) < 1e-9


def test_a_graph_gives_what_the_data_give(modules):
    graph = mf.NeighborGraph.build(STRIP, 10)
    of_graph, of_data = embedded_by(modules, graph), embedded_by(modules, STRIP)
    np.testing.assert_array_equal(of_graph.embedding_, of_data.embedding_)
    np.testing.assert_allclose(of_graph.transform(NEW), of_data.transform(NEW))


def test_an_extension_of_your_own_places_components(modules):
    nearest, commute = modules["nearest"].Nearest, modules["commute_time"]

    class Posed(commute.PosedCommuteTime):
        def extend(self, spectra, layout, embedding):
            return nearest(self.data.rows, self.coordinates(spectra), layout)

    class Method(commute.CommuteTime):
        def _pose(self, data):
            posed = super()._pose(data)
            return Posed(**{name: getattr(posed, name) for name in posed.__dataclass_fields__})

    with pytest.warns(DisconnectedGraphWarning):
        model = Method(n_neighbors=10).fit(TWO)
    np.testing.assert_allclose(model.transform(TWO + 1e-6), model.embedding_)
    assert model.extension_error(TWO) == 0


def test_a_kernel_of_your_own_has_the_gradient_of_its_objective(modules):
    kernel, rng = modules["charbonnier"].Charbonnier(), np.random.default_rng(0)
    W, Y = np.ones((9, 9)) - np.eye(9), rng.standard_normal((9, 2))
    for normalizer in (Joint(), PerPoint(), Unnormalized()):
        objective = Pairwise(W / W.sum(), kernel, normalizer, weight=3.0)
        numeric = approx_fprime(Y.ravel(), lambda y, e=objective: e.value(y.reshape(9, 2)), 1e-7)
        gradient = objective.value_and_gradient(Y)[1]
        np.testing.assert_allclose(numeric.reshape(9, 2), gradient, atol=1e-5)


class TestAdjacency:
    """A method that defines only `_pose`."""

    def test_it_has_the_eigenvectors_of_the_matrix(self, modules):
        model = modules["adjacency"].Adjacency(3, n_neighbors=10)
        A = model.pose(STRIP).problem.operator.toarray()
        values, vectors = np.linalg.eigh(A)
        model.fit(STRIP)
        np.testing.assert_allclose(model.eigenvalues_, values[-2:-5:-1])
        cosines = np.abs(np.sum(model.embedding_ * vectors[:, -2:-5:-1], axis=0))
        np.testing.assert_allclose(cosines, np.linalg.norm(model.embedding_, axis=0), rtol=1e-6)

    @pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
    def test_new_points_by_regression(self, modules, convert):
        X, held = STRIP[::2], STRIP[1::2]
        model = modules["adjacency"].Adjacency(2, n_neighbors=10).fit(convert(X))
        whole = modules["adjacency"].Adjacency(2, n_neighbors=10).fit(STRIP)
        placed = model.transform(convert(held))
        for j in range(2):
            assert abs(np.corrcoef(placed[:, j], whole.embedding_[1::2, j])[0, 1]) > 0.95
        alone = np.vstack([model.transform(convert(held[i : i + 1])) for i in range(5)])
        np.testing.assert_allclose(alone, placed[:5], atol=1e-7 * np.abs(placed).max())
        np.testing.assert_array_equal(model.transform(convert(X)), model.embedding_)
        assert model.extension_error(convert(X)) < 0.2  # regression smooths

    def test_components_and_coordinates_without_redundancy(self, modules):
        with pytest.warns(DisconnectedGraphWarning):
            model = modules["adjacency"].Adjacency(2, n_neighbors=10).fit(TWO)
        gap = np.ptp(model.embedding_, axis=0).max()
        moved = model.transform(TWO + 1e-3)
        assert np.abs(moved - model.embedding_).max() < 0.05 * gap
        plain = mf.NonRedundant(modules["adjacency"].Adjacency(n_neighbors=10)).fit(STRIP)
        width = np.cos(np.pi * PLACES[:, 1])
        assert abs(np.corrcoef(plain.embedding_[:, 1], width)[0, 1]) > 0.8
        assert np.isfinite(plain.transform(NEW)).all()

    def test_precomputed_values_need_a_formula(self, modules):
        from manifoldry.base.input import Distances

        class OfDistances(modules["adjacency"].Adjacency):
            _input_type = Distances

        with pytest.raises(NotImplementedError, match=r"fit was given .*; define extend, or pass"):
            OfDistances(n_neighbors=10).fit(cdist(STRIP, STRIP))


class TestExponential:
    """An affinity whose weights depend on the direction."""

    @pytest.mark.parametrize("symmetrize", ["or", "and", "mean"])
    def test_weights(self, modules, symmetrize):
        graph = mf.NeighborGraph.build(STRIP, 8)
        affinity = modules["exponential"].Exponential(symmetrize=symmetrize)
        D = cdist(STRIP, STRIP)
        ranks = D.argsort(axis=1).argsort(axis=1)
        near = (ranks > 0) & (ranks <= 8)
        scale = (D * near).sum(axis=1, keepdims=True) / 8
        W = np.exp(-D / scale) * near
        combine = {"or": np.maximum, "and": np.minimum, "mean": lambda a, b: (a + b) / 2}
        expected = combine[symmetrize](W, W.T)
        np.testing.assert_allclose(affinity.fit(graph).matrix(graph).toarray(), expected)

    @pytest.mark.parametrize("symmetrize", ["or", "mean"])
    def test_new_points_have_the_weights_of_training_points(self, modules, symmetrize):
        affinity = modules["exponential"].Exponential(symmetrize=symmetrize)
        for method in (mf.LaplacianEigenmaps, mf.DiffusionMaps):
            model = method(2, affinity=affinity, n_neighbors=10).fit(STRIP)
            assert model.extension_error(STRIP) < 1e-9


def test_an_adjacency_matrix_is_its_own_graph(modules):
    """A sparse operator whose largest eigenvectors are wanted: its entries are the weights."""
    commute, nearest = modules["commute_time"], modules["nearest"].Nearest

    @dataclass(frozen=True, eq=False)
    class Posed(PosedOnGraph):
        def extend(self, spectra, layout, embedding):
            return nearest(self.data.rows, self.coordinates(spectra), layout)

    class Adjacency(commute.CommuteTime):
        def _pose(self, data):
            posed = super()._pose(data)
            problem = SpectralProblem(sparse.csr_array(posed.W), "largest")
            return Posed(data, problem, posed.rows_by_component)

    model = mf.NonRedundant(Adjacency(n_neighbors=10)).fit(STRIP)
    assert (model.unpredictability_ > 0.3).all()
    assert np.isfinite(model.transform(NEW)).all()


def test_an_extension_that_ignores_components_is_corrected(modules):
    commute = modules["commute_time"]

    class Origin(Extension):
        def transform(self, X):
            return np.zeros((X.shape[0], 2))

    class Posed(commute.PosedCommuteTime):
        def extend(self, spectra, layout, embedding):
            return Origin()

    class Method(commute.CommuteTime):
        def _pose(self, data):
            posed = super()._pose(data)
            return Posed(**{name: getattr(posed, name) for name in posed.__dataclass_fields__})

    with pytest.warns(DisconnectedGraphWarning):
        model = mf.NonRedundant(Method(n_neighbors=10)).fit(TWO)
    atol = 1e-6 * np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(TWO + 1e-7), model.embedding_, atol=atol)


def test_a_method_that_poses_nothing_is_told():
    class Nothing(SpectralEmbedder):
        def __init__(self, n_components=None):
            self.n_components = n_components

    class Lossless(NeighborEmbedder):
        pass

    with pytest.raises(TypeError, match=r"Nothing._pose must return a manifoldry.spectral.Posed"):
        Nothing().fit(STRIP)
    with pytest.raises(TypeError, match=r"Lossless._objective must return a manifoldry.objectives"):
        Lossless().fit(STRIP)
    with pytest.raises(TypeError, match=r"kernel=<class.* must be an instance of"):
        Pairwise(np.array([[0, 0.5], [0.5, 0]]), GaussianKernel, Joint())
