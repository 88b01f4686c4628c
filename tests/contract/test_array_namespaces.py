"""Searches on arrays of other namespaces give the same results as with numpy.

array_api_strict implements nothing but the array API standard and does not mix with numpy arrays,
so that what passes here runs with any namespace. CuPy is tested if there is a GPU.
"""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.optimize import (
    LBFGS,
    Armijo,
    ConjugateGradient,
    DeflatedPower,
    DiagonalHessian,
    EveryStep,
    GradientDescent,
    Heat,
    Homotopy,
    HomotopyRun,
    Identity,
    Jacobi,
    Momentum,
    Power,
    Projector,
    SpectralDirection,
    Stopping,
    StrongWolfe,
)
from manifoldry.util.arrays import to_numpy

N = 14
STEPS = Stopping(max_iter=15, tol=0, value_tol=0, gradient_tol=1e-9)
LINE = np.linspace(0, 1, N)[:, None]
SMOOTH = np.exp(-((LINE - LINE.T) ** 2) / 0.05)  # dense guidance, which moves to the namespace

# A new filter, line search or method joins with one line here.
FILTERS = {
    "Identity": Identity(),
    "Jacobi": Jacobi(),
    "DiagonalHessian": DiagonalHessian(),
    "SpectralDirection": SpectralDirection(),
    "Projector": Projector(step=5, schedule=EveryStep()),
    "Power": Power(4, schedule=EveryStep()),
    "Power-dense": Power(4, matrix=SMOOTH, schedule=EveryStep()),
    "Power-fractions": Power(2, (0.5,), matrix=SMOOTH, schedule=EveryStep()),
    "Power-series": Power(2, (0.5,), all_eigenvectors_up_to=0, schedule=EveryStep()),
    "DeflatedPower": DeflatedPower(2, schedule=EveryStep()),
    "DeflatedPower-dense": DeflatedPower(2, matrix=SMOOTH, schedule=EveryStep()),
    "Heat": Heat(factor=0.3, schedule=EveryStep()),
    "Heat-dense": Heat(factor=0.3, matrix=SMOOTH, schedule=EveryStep()),
    "Heat-then": Heat(2.0, factor=0.3, schedule=EveryStep(), final_filter=SpectralDirection()),
}
LINE_SEARCHES = {"armijo": Armijo(), "wolfe": StrongWolfe(c2=0.4)}
METHODS = {"gradient": GradientDescent, "cg": ConjugateGradient, "lbfgs": LBFGS}


class Elastic(Objective):
    """Σ Wd² + λ·Σ e^{−d²}/n² over all pairs, for maps of one namespace."""

    def __init__(self, xp, weight=4.0):
        self.xp, self.weight = xp, weight
        W = np.exp(-((LINE - LINE.T) ** 2) / 0.05) - np.eye(N)
        self.on_host = sparse.csr_array(W / W.sum())
        self.W = xp.asarray(self.on_host.toarray())

    n = N

    @property
    def attraction(self):
        return self.on_host

    def value_and_gradient(self, Y):
        xp, W = self.xp, self.xp.asarray(self.W, dtype=Y.dtype)
        steps = Y[:, None, :] - Y[None, :, :]
        D = xp.sum(steps * steps, axis=2)
        R = self.weight / N**2 * xp.exp(-D)
        G = 4 * xp.sum((W - R)[:, :, None] * steps, axis=1)
        return float(xp.sum(W * D) + xp.sum(R)), G

    def diagonal_curvature(self, Y):
        return 4 * self.xp.sum(self.W, axis=1)[:, None] * self.xp.ones_like(Y)

    def hessian_product(self, Y, V):
        h = 1e-5
        forward, backward = (self.value_and_gradient(Y + s * V)[1] for s in (h, -h))
        return (forward - backward) / (2 * h)


@pytest.fixture(params=["array_api_strict", *(["cupy"] if find_spec("cupy") else [])])
def xp(request):
    """An array namespace other than numpy."""
    module = pytest.importorskip(request.param)
    if request.param == "cupy" and not module.cuda.is_available():
        pytest.skip("no GPU")
    return module


def is_there(Y, xp):
    return isinstance(Y, type(xp.zeros(1)))


@pytest.fixture
def start():
    return np.random.default_rng(3).normal(scale=0.2, size=(N, 2))


def compare(optimizer, start, xp, tol=1e-10):
    """Search in numpy and in another namespace."""
    seen = []
    reference = optimizer.minimize(Elastic(np), start)
    solution = optimizer.minimize(Elastic(xp), xp.asarray(start), callback=seen.append)
    assert is_there(solution.embedding, xp)
    assert is_there(seen[-1].embedding, xp)
    assert all(isinstance(x, float) for x in solution.trace[-1][1:4])
    found = to_numpy(solution.embedding)
    assert solution.n_iter == reference.n_iter > 3
    assert solution.status == reference.status
    np.testing.assert_allclose(found, reference.embedding, rtol=0, atol=tol)
    assert solution.value == pytest.approx(reference.value, rel=tol)
    assert solution.value < 0.99 * solution.trace[0].value


@pytest.mark.parametrize("search", LINE_SEARCHES)
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("rule", METHODS)
def test_searches_along_lines(rule, filter, search, start, xp):
    optimizer = METHODS[rule](FILTERS[filter], line_search=LINE_SEARCHES[search], stopping=STEPS)
    compare(optimizer, start, xp)


@pytest.mark.parametrize("filter", FILTERS)
def test_momentum(filter, start, xp):
    compare(Momentum(FILTERS[filter], learning_rate=0.5, stopping=STEPS), start, xp)


def test_a_search_that_converges(start, xp):
    compare(LBFGS(), start, xp, tol=1e-6)


def test_single_precision_stays(start, xp):
    single = xp.asarray(start.astype(np.float32))
    for filter in FILTERS.values():
        solution = GradientDescent(filter, stopping=STEPS).minimize(Elastic(xp), single)
        assert solution.embedding.dtype == xp.float32
        assert solution.value < solution.trace[0].value


def test_whole_numbers_and_bad_starts(start, xp):
    elastic = Elastic(xp)
    whole = xp.asarray((np.arange(2 * N) % 7).reshape(N, 2))
    found = GradientDescent(stopping=Stopping(max_iter=2)).minimize(elastic, whole)
    assert found.embedding.dtype == xp.float64
    with pytest.raises(ValueError, match=r"has shape \(13, 2\)"):
        LBFGS().minimize(elastic, xp.asarray(start[1:]))
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        LBFGS().minimize(elastic, xp.asarray(np.full_like(start, np.nan)))


def test_the_start_is_left_alone(start, xp):
    there = xp.asarray(start)
    found = LBFGS(stopping=Stopping(max_iter=1)).minimize(Elastic(xp), there)
    found.embedding[:, :] = 0.0
    np.testing.assert_array_equal(to_numpy(there), start)


def test_homotopy(start, xp):
    """From a line, which is a saddle point, along four weights; the path is that of numpy."""
    flat = start * [1.0, 1e-9]
    rule, values = Homotopy(jitter=0.0, max_iter=20), np.geomspace(1.0, 20.0, 4)
    ends = []
    for space in (np, xp):
        run = HomotopyRun(
            rule,
            lambda value, space=space: Elastic(space, value),
            space.asarray(flat),
            LBFGS(stopping=Stopping(max_iter=50)),
            np.random.default_rng(0),
        )
        ends.append((rule.follow(run, values), run.path))
    (reference, expected), (solution, path) = ends
    assert is_there(solution.embedding, xp)
    assert all(isinstance(Y, np.ndarray) for Y in path.embeddings)
    assert list(path.column("rank")) == list(expected.column("rank"))
    assert path.steps[-1].rank == 2
    assert solution.value == pytest.approx(reference.value, rel=1e-6)
