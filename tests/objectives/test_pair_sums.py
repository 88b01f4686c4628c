"""Sums over pairs: compiled loops and numpy against dense matrices and scipy's densities."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from scipy.stats import t as student

from manifoldry.objectives import (
    ComplementKernel,
    Exact,
    GaussianKernel,
    Kernel,
    StudentKernel,
    exact,
)
from manifoldry.util.threads import threads_allowed

TOLERANCE = {np.float32: 2e-6, np.float64: 1e-13}


COMPILED = Exact(compile_pairs=0.0)
KERNELS = (GaussianKernel(), StudentKernel())


@pytest.fixture(params=["numpy", "compiled"])
def pairs(request):
    return COMPILED if request.param == "compiled" else Exact(compile_pairs=np.inf)


def points(n, d, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def density(D, dof):
    """κ and u; Student's density is that of scipy, scaled to one at zero."""
    if dof is None:
        return np.exp(-D), np.ones_like(D)
    return student.pdf(np.sqrt(D), dof) / student.pdf(0, dof), 1 + D / dof


def expected(Y, weights=1.0, dof=None, rows=slice(None)):
    """Kernel sums, forces and second moments by dense matrices in double precision."""
    Y = np.asarray(Y, float)
    derivative = 1 if dof is None else (dof + 1) / (2 * dof)
    curvature = 1 if dof is None else derivative * (derivative + 1 / dof)
    K, u = density(cdist(Y[rows], Y, "sqeuclidean"), dof)
    K = K * weights
    K[np.arange(len(K)), np.arange(len(Y))[rows]] = 0
    steps = Y[rows, None] - Y
    force = np.einsum("ij,ijc->ic", derivative * K / u, steps)
    return K.sum(axis=1), force, np.einsum("ij,ijc->ic", curvature * K / u**2, steps**2)


def check(pairs, kernel, Y, weights=None, **how):
    """Errors are relative to the largest value, since forces cancel."""
    sums, moments = pairs.sums(kernel, Y, weights), pairs.moments(kernel, Y, weights)
    assert sums.kernel_sums.dtype == np.float64
    assert sums.force.dtype == moments.dtype == Y.dtype
    wanted = expected(Y, 1.0 if weights is None else np.asarray(weights, float), **how)
    for found, right in zip((*sums[:2], moments), wanted, strict=True):
        assert found.shape == right.shape
        assert np.abs(found - right).max() <= TOLERANCE[Y.dtype.type] * np.abs(right).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
class TestAgainstWholeMatrices:
    """Some combinations only, since each is compiled separately from the same function body."""

    @pytest.mark.parametrize("d", [1, 2, 3, 5])
    def test_gaussian(self, pairs, d, dtype):
        # More than one tile, and not a multiple of its size.
        check(pairs, GaussianKernel(), points(1300, d, dtype))

    @pytest.mark.parametrize(("d", "dof"), [(2, 1.0), (3, 1.0), (5, 1.0), (2, 0.5), (2, 3.0)])
    def test_student(self, pairs, d, dof, dtype):
        check(pairs, StudentKernel(dof), points(301, d, dtype), dof=dof)

    @pytest.mark.parametrize("d", [1, 5])
    def test_point_weights(self, pairs, d, dtype):
        check(
            pairs, StudentKernel(), points(77, d, dtype), points(77, 1, dtype, seed=2)[:, 0], dof=1
        )

    @pytest.mark.parametrize("weight_dtype", [np.float32, np.float64])
    def test_weights(self, pairs, dtype, weight_dtype):
        W = np.abs(points(66, 66)).astype(weight_dtype)
        check(pairs, GaussianKernel(), points(66, 2, dtype), W + W.T)


@pytest.mark.parametrize(
    "kernel", [GaussianKernel(), StudentKernel(), StudentKernel(2.5)], ids=repr
)
def test_sums_over_edges_are_those_with_dense_weights(kernel):
    Y, W = points(50, 2), np.abs(points(50, 50)) * (points(50, 50, seed=3) > 0.5)
    W = np.triu(W, 1) + np.triu(W, 1).T
    (kernel_sums, force, _), edges = Exact().sums(kernel, Y, W), sparse.csr_array(W)
    found = Exact().sums(kernel, Y, edges)
    np.testing.assert_allclose(found.kernel_sums, kernel_sums, rtol=1e-13)
    np.testing.assert_allclose(found.force, force, atol=1e-13)
    moments = Exact().moments(kernel, Y, W)
    np.testing.assert_allclose(Exact().moments(kernel, Y, edges), moments, rtol=1e-13)


@dataclass(frozen=True)
class Plain(Kernel):
    """Student's kernel under another class, which has no compiled loops."""

    def phi(self, D):
        return np.log1p(D)

    def derivative(self, D):
        return 1 / (1 + D)

    def second_derivative(self, D):
        return -1 / (1 + D) ** 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_without_compiled_loops(dtype):
    check(COMPILED, Plain(), points(301, 2, dtype), dof=1)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("dof", [1.0, 2.5])
def test_compiled_attraction_is_that_of_numpy(d, dof):
    rng = np.random.default_rng(4)
    W = sparse.csr_array(np.where(rng.random((500, 500)) < 0.05, rng.random((500, 500)), 0))
    Y = rng.normal(size=(500, d))
    plain = Exact(compile_edges=np.inf).attraction(StudentKernel(dof), W)(Y)
    compiled = Exact(compile_edges=0, edge_block=1000).attraction(StudentKernel(dof), W)(Y)
    assert compiled.value == pytest.approx(plain.value, rel=1e-12)
    np.testing.assert_allclose(compiled.force, plain.force, atol=1e-12)
    np.testing.assert_allclose(compiled.degree, plain.degree, rtol=1e-12)


@pytest.mark.parametrize("kernel", [*KERNELS, Plain()], ids=repr)
def test_attraction_follows_the_kernel(kernel):
    """Σ W·(−log κ) and a quarter of its gradient, by whole matrices."""
    Y, W = points(20, 2), np.abs(points(20, 20))
    W = np.triu(W, 1) + np.triu(W, 1).T
    D = cdist(Y, Y, "sqeuclidean")
    pull = Exact().attraction(kernel, sparse.csr_array(W))(Y)
    assert pull.value == pytest.approx((W * -np.log(kernel(D))).sum(), rel=1e-13)
    T = W * kernel.derivative(D)
    np.testing.assert_allclose(pull.force, T.sum(axis=1)[:, None] * Y - T @ Y, atol=1e-12)
    np.testing.assert_allclose(pull.degree, T.sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize(
    "kernel",
    [
        *KERNELS,
        StudentKernel(0.4),
        StudentKernel(7.0),
        ComplementKernel(StudentKernel()),
        ComplementKernel(GaussianKernel()),
    ],
    ids=repr,
)
def test_derivatives_of_kernels(kernel):
    D, h = np.linspace(0.1, 9, 50), 1e-5
    for function, derivative in (
        (kernel.phi, kernel.derivative),
        (kernel.derivative, kernel.second_derivative),
    ):
        change = np.subtract(function(D + h), function(D - h)) / (2 * h)
        np.testing.assert_allclose(np.broadcast_to(derivative(D), 50), change, atol=1e-9)
    np.testing.assert_allclose(kernel(D), np.exp(-kernel.phi(D)), rtol=1e-13)
    second = (kernel(D + 1e-4) - 2 * kernel(D) + kernel(D - 1e-4)) / 1e-8
    np.testing.assert_allclose(kernel.curvature(D) * kernel(D), second, rtol=1e-5, atol=1e-6)


class TestExtremes:
    def test_integer_weights(self, pairs):
        check(pairs, GaussianKernel(), points(30, 2), np.arange(30))

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_a_point_alone(self, pairs, kernel):
        kernel_sums, force, _ = pairs.sums(kernel, np.array([[1.0, 2.0]]))
        assert kernel_sums.tolist() == [0]
        assert force.tolist() == [[0, 0]]

    def test_no_points(self, pairs):
        kernel_sums, force, _ = pairs.sums(GaussianKernel(), np.empty((0, 2)))
        assert force.shape == (0, 2)
        assert kernel_sums.shape == (0,)

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_coincident_points(self, pairs, kernel):
        kernel_sums, force, _ = pairs.sums(kernel, np.full((40, 2), 3.7, np.float32))
        assert (kernel_sums == 39).all()
        assert (force == 0).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("far", [1e2, 1e15, 1e30])
    @pytest.mark.filterwarnings("error")
    def test_far_points_do_not_interact(self, pairs, dtype, far):
        Y = np.array([[0, 0], [0, 1], [far, far]], dtype)
        kernel_sums, force, _ = pairs.sums(GaussianKernel(), Y)
        assert kernel_sums == pytest.approx([np.exp(-1), np.exp(-1), 0], abs=0, rel=1e-6)
        assert (force[2] == 0).all()
        assert (pairs.moments(GaussianKernel(), Y)[2] == 0).all()
        for dof in (1.0, 2.5):
            sums, moments = pairs.sums(StudentKernel(dof), Y), pairs.moments(StudentKernel(dof), Y)
            assert np.isfinite(sums.kernel_sums).all()
            assert np.isfinite(sums.force).all()
            assert np.isfinite(moments).all()
            assert sums.kernel_sums[2] < 1e-3

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_nan_is_propagated(self, pairs, kernel):
        sums = pairs.sums(kernel, np.array([[0, 0], [1, np.nan], [2, 0]], np.float32))
        assert np.isnan(sums.kernel_sums).all()
        assert np.isnan(sums.force[:, 1]).all()

    def test_far_offset_costs_no_digits(self, pairs):
        Y = np.round(points(50, 2) * 2**10) / 2**10
        kernel_sums, moved = (pairs.sums(GaussianKernel(), Z).kernel_sums for Z in (Y, Y + 2.0**30))
        assert (kernel_sums == moved).all()

    def test_small_kernel_sums_are_accurate(self, pairs):
        """The sum must not contain κ(0) = 1 of the point itself."""
        kernel_sums = pairs.sums(GaussianKernel(), np.array([[0.0], [5.0]])).kernel_sums
        assert kernel_sums == pytest.approx(np.exp(-25), rel=1e-14, abs=0)

    def test_layout_and_permission_do_not_matter(self, pairs):
        Y, W = points(30, 2), np.abs(points(30, 30))
        W += W.T
        kernel_sums, force, _ = pairs.sums(GaussianKernel(), Y, W)
        frozen, big = np.asfortranarray(Y), np.zeros((60, 60))
        frozen.flags.writeable = False
        big[::2, ::2] = W
        for V in (np.asfortranarray(W), big[::2, ::2]):
            again = pairs.sums(GaussianKernel(), frozen, V)
            assert (again.kernel_sums == kernel_sums).all()
            assert (again.force == force).all()

    def test_wrong_shapes_are_refused(self, pairs):
        with pytest.raises(ValueError, match=r"\(1, 4\) must be \(5,\)"):
            pairs.sums(GaussianKernel(), points(5, 2), np.ones(4))


def test_rows_do_not_depend_on_threads_or_blocks():
    Y = points(700, 2, np.float32)
    with threads_allowed(1):
        alone = COMPILED.sums(GaussianKernel(), Y)
    with threads_allowed(3):
        together = Exact(compile_pairs=0.0, block=10_000).sums(GaussianKernel(), Y)
    assert (alone.kernel_sums == together.kernel_sums).all()
    assert (alone.force == together.force).all()


def test_small_sums_compile_nothing(monkeypatch):
    monkeypatch.setattr(exact, "compiled_loop", None)
    few = Exact(compile_pairs=10**2)
    few.sums(GaussianKernel(), points(10, 2))
    with pytest.raises(TypeError):
        few.sums(GaussianKernel(), points(11, 2))


@pytest.mark.parametrize(
    ("dtype", "last", "error"), [(np.float32, 87.3, 1.2e-7), (np.float64, 708.3, 5e-16)]
)
def test_exponential(dtype, last, error):
    from manifoldry.objectives import compiled

    exp_minus = compiled.exp_minus32 if dtype == np.float32 else compiled.exp_minus64
    t = np.concatenate([np.linspace(0, last, 30_001), np.logspace(-9, 0, 1000)]).astype(dtype)
    true = np.exp(-t.astype(np.longdouble))
    assert np.abs(np.array([exp_minus(x) for x in t]) / true - 1).max() <= error
    assert exp_minus(dtype(0)) == 1
    for far in (1.01 * last, 1e30, np.inf):
        assert exp_minus(dtype(far)) == 0


def test_single_precision_at_ten_thousand_points():
    Y = points(10_000, 2, np.float32) * 3
    for kernel, dof in ((GaussianKernel(), None), (StudentKernel(), 1)):
        kernel_sums, force, _ = expected(Y, dof=dof, rows=slice(100))
        found = Exact().sums(kernel, Y)
        assert found.kernel_sums[:100] == pytest.approx(kernel_sums, rel=3e-7)
        length = np.linalg.norm(force, axis=1)
        assert (np.linalg.norm(found.force[:100] - force, axis=1) < 3e-6 * length).all()
