"""Sums over pairs by interpolation on a mesh, on devices: primitives, accuracy, and the choice."""

from dataclasses import replace

import numpy as np
import pytest

from manifoldry import TSNE, ElasticEmbedding, SymmetricSNE
from manifoldry.device.emulated import COPIES
from manifoldry.device.primitives import Nodes
from manifoldry.objectives import (
    CellSums,
    ComplementKernel,
    Exact,
    Fastest,
    FFTInterpolation,
    GaussianKernel,
    StudentKernel,
    elastic,
    sne,
    tsne,
    using_pair_sums,
)
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.fastest import default_pair_sums
from manifoldry.objectives.mesh import Mesh, Potential

KERNELS = (
    GaussianKernel(),
    StudentKernel(),
    StudentKernel(0.5),
    ComplementKernel(StudentKernel(), epsilon=0.5),
)


def clusters(d, n=300, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    Y = np.concatenate([rng.normal(size=(n, d)) * 4, rng.normal(size=(n, d)) * 2 + 9])
    return (Y / 4 if d == 3 else Y).astype(dtype)


def weights_of(kind, n, seed=1, n_factors=35):  # more than the lanes of a warp
    rng = np.random.default_rng(seed)
    if kind == "factors":
        left = rng.uniform(size=(n, n_factors))
        return FactoredWeights(left, left)
    return rng.uniform(size=n) if kind == "points" else None


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def on(device, weights):
    return device.array(weights) if isinstance(weights, np.ndarray) else weights


def sums(device, engine, kernel, Y, weights=None):
    found = engine.sums(kernel, device.array(Y), on(device, weights))
    return device.host(found.kernel_sums), device.host(found.force)


def nodes_of(mesh):
    return Nodes(mesh.spacing, tuple(mesh.first), mesh.padded)


def host_charges(mesh, weights):
    """Charges at the nodes of the mesh on the CPU, (n_charges, *padded)."""
    charges = mesh.charges(weights)
    several = charges.ndim > mesh.d
    charges = np.moveaxis(charges, -1, 0) if several else charges[None]
    missing = [(0, m - k) for m, k in zip(mesh.padded, mesh.shape, strict=True)]
    return np.pad(charges, [(0, 0), *missing])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 40, 3000])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_corners(in_use, d, n, dtype):
    Y = np.random.default_rng(n).normal(size=(n, d)).astype(dtype)
    found = in_use.corners(in_use.array(Y))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, np.stack([Y.min(axis=0), Y.max(axis=0)]))
    Y = Y.copy()  # the device keeps the copy of an array, which must not change
    Y[n // 2, -1] = np.nan
    found = in_use.corners(in_use.array(Y))
    assert np.isnan(found[:, -1]).all()
    assert np.isfinite(found[:, :-1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [None, "points", "factors"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_charges_and_values_are_those_of_the_cpu(in_use, d, kind, dtype):
    Y = clusters(d, dtype=dtype)
    weights, mesh = weights_of(kind, len(Y)), Mesh.of(Y, 0.4)
    nodes, given = nodes_of(mesh), in_use.array(Y)
    left = right = None
    if kind == "factors":
        left, right = in_use.array(weights.left), in_use.array(weights.right)
    elif kind == "points":
        right = in_use.array(weights[:, None])
    charges, expected = in_use.spread(given, right, nodes), host_charges(mesh, weights)
    np.testing.assert_allclose(
        in_use.host(charges), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )
    rng = np.random.default_rng(2)
    phi, near = rng.normal(size=expected.shape), rng.normal(size=(4,) * d)
    at_nodes = phi[(slice(None), *map(slice, mesh.shape))]
    at_nodes = (
        np.ascontiguousarray(np.moveaxis(at_nodes, 0, -1)) if kind == "factors" else at_nodes[0]
    )
    expected, slopes = mesh.values_and_slopes(
        Potential(np.ascontiguousarray(at_nodes), near), weights
    )
    arrays = in_use.array(phi), in_use.array(near)
    values, gradients = in_use.gather(given, *arrays, nodes, left, right, True)
    for found, wanted in ((values, expected), (gradients, slopes)):
        np.testing.assert_allclose(in_use.host(found), wanted, atol=1e-10 * np.abs(wanted).max())
    values, gradients = in_use.gather(given, *arrays, nodes, left, right, False)
    np.testing.assert_allclose(in_use.host(values), expected, atol=1e-10 * np.abs(expected).max())
    assert gradients.shape == (0, d)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_charges_of_any_size_neither_overflow_nor_vanish(in_use, size):
    Y = clusters(2)
    mesh = Mesh.of(Y, 0.4)
    charges = np.random.default_rng(3).normal(size=(len(Y), 1))
    found = in_use.spread(in_use.array(Y), in_use.array(size * charges), nodes_of(mesh))
    expected = host_charges(mesh, charges[:, 0])
    np.testing.assert_allclose(in_use.host(found) / size, expected, atol=1e-12 * len(Y))


def test_many_charges_in_one_place_do_not_overflow(in_use):
    """All charges at the same nodes: the largest sum of units there can be."""
    n = 200_000
    Y, nodes = in_use.array(np.full((n, 1), 0.5)), Nodes(1.0, (0.0,), (4,))
    for charge in (None, 1.0, -1.0):
        charges = None if charge is None else in_use.array(np.full((n, 1), charge))
        found = in_use.host(in_use.spread(Y, charges, nodes))[0]
        expected = (charge or 1.0) * n * np.array([1, 23, 23, 1]) / 48
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_charges_that_are_not_finite_are_not_lost(in_use, value):
    Y = clusters(2)
    charges = np.ones((len(Y), 1))
    charges[5] = value
    found = in_use.spread(in_use.array(Y), in_use.array(charges), nodes_of(Mesh.of(Y, 0.4)))
    assert not np.isfinite(in_use.host(found)).all()


@pytest.mark.parametrize("kind", [None, "points", "factors"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_interpolated_sums_are_those_of_the_cpu(in_use, d, kernel, kind):
    """Up to zeros that are added to the mesh, of which the kernel's kink is further away."""
    Y, engine = clusters(d), FFTInterpolation()
    weights = weights_of(kind, len(Y), n_factors=3)
    expected = engine.sums(kernel, Y, weights)
    found, force = sums(in_use, engine, kernel, Y, weights)
    assert relative(found, expected.kernel_sums) <= 1e-6
    assert relative(force, expected.force) <= 1e-5
    moments = in_use.host(engine.moments(kernel, in_use.array(Y), on(in_use, weights)))
    assert relative(moments, engine.moments(kernel, Y, weights)) <= 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [GaussianKernel(), StudentKernel()], ids=str)
def test_interpolated_sums_are_as_accurate_as_on_the_cpu(in_use, kernel, dtype):
    """Errors against exact sums; those of points in single precision are not larger, either."""
    Y, engine = (2 * clusters(2, 1000)).astype(dtype), FFTInterpolation()
    expected, on_cpu = (e.sums(kernel, Y.astype(float)) for e in (Exact(), engine))
    found, force = sums(in_use, engine, kernel, Y)
    assert (found.dtype, force.dtype) == (np.float64, dtype)
    for ours, theirs, exact in zip((found, force), on_cpu[:2], expected[:2], strict=True):
        assert relative(ours, exact) <= 1.01 * relative(theirs, exact)


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-3])
def test_small_embeddings(in_use, scale):
    Y = scale * clusters(2, 50)
    found, force = sums(in_use, FFTInterpolation(), GaussianKernel(), Y)
    np.testing.assert_allclose(found, len(Y) - 1, rtol=1e-3)
    expected = Exact().sums(GaussianKernel(), Y).force
    assert np.abs(force - expected).max() <= 2e-3 * np.abs(expected).max() + 1e-11


def test_results_have_the_same_bits_in_any_order(in_use):
    Y, kernel = clusters(2, 2000), StudentKernel()
    first, again = (sums(in_use, FFTInterpolation(), kernel, Y) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert a.tobytes() == b.tobytes()
    if in_use.name != "emulated":  # which adds floating-point numbers
        order = np.random.default_rng(3).permutation(len(Y))
        permuted = sums(in_use, FFTInterpolation(), kernel, Y[order])
        for a, b in zip(first, permuted, strict=True):
            assert a[order].tobytes() == b.tobytes()


def test_factors_are_transformed_in_groups(in_use):
    Y = clusters(2)
    weights = weights_of("factors", len(Y))
    together = sums(in_use, FFTInterpolation(), GaussianKernel(), Y, weights)
    grouped = sums(in_use, FFTInterpolation(max_nodes=1e5), GaussianKernel(), Y, weights)
    for a, b in zip(together, grouped, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(a).max())


def test_transforms_are_kept_for_each_place(in_use):
    Y, engine = clusters(2), FFTInterpolation()
    engine.sums(StudentKernel(), in_use.array(Y))
    first = engine._transforms[-1].mesh_kernel
    engine.sums(StudentKernel(), in_use.array(1.001 * Y))
    assert engine._transforms[-1].mesh_kernel is first
    engine.sums(StudentKernel(), Y)
    assert [known.place for known in engine._transforms] == [in_use.name, "cpu"]


def test_points_that_are_not_finite_or_too_far_apart(in_use):
    for far in (np.nan, 1e300):
        Y = clusters(2)
        Y[0, 0] = far
        with pytest.raises(ValueError, match="not finite, or too far apart"):
            FFTInterpolation().sums(StudentKernel(), in_use.array(Y))
    with pytest.raises(MemoryError, match=r"nodes needs .* pass pair_sums=Fastest\(\)"):
        FFTInterpolation().sums(StudentKernel(), in_use.array(np.array([[0.0, 0.0], [1e7, 1e7]])))


def test_weights_of_the_wrong_length_are_refused(in_use):
    with pytest.raises(ValueError, match="there are 599 weights of 600 points"):
        FFTInterpolation().sums(
            StudentKernel(), in_use.array(clusters(2)), in_use.array(np.ones(599))
        )


class TestChoice:
    @pytest.mark.parametrize(
        ("n", "kernel", "kind", "engine"),
        [
            (3000, GaussianKernel(), None, Exact),
            (20_000, GaussianKernel(), None, FFTInterpolation),
            (3000, StudentKernel(), "factors", FFTInterpolation),
            (3000, KERNELS[-1], None, FFTInterpolation),
            (2500, StudentKernel(), "points", Exact),
        ],
    )
    def test_exact_for_more_points_than_on_the_cpu(self, in_use, n, kernel, kind, engine):
        fastest = Fastest(exact_on_device_up_to=10_000)
        Y = np.random.default_rng(0).normal(scale=20, size=(n, 2))
        chosen = fastest.choose(kernel, in_use.array(Y), on(in_use, weights_of(kind, n)))
        assert type(chosen.pair_sums) is engine
        assert in_use.name in chosen.reason

    def test_a_mesh_that_is_too_large(self, in_use):
        Y = in_use.array(1e6 * clusters(2))
        chosen = Fastest(exact_up_to=10, exact_on_device_up_to=10).choose(StudentKernel(), Y)
        assert "max_nodes" in chosen.reason
        assert type(chosen.pair_sums) is Exact

    def test_more_than_three_dimensions(self, in_use):
        Y = in_use.array(np.zeros((30, 4)))
        chosen = Fastest(exact_up_to=10, exact_on_device_up_to=10).choose(StudentKernel(), Y)
        assert chosen.reason.startswith("exact: more than 3")

    def test_points_that_are_not_finite_are_left_to_the_optimizer(self, in_use):
        Y = clusters(2)
        Y[3] = np.nan
        engine = Fastest(exact_up_to=10, exact_on_device_up_to=10)
        assert np.isnan(sums(in_use, engine, StudentKernel(), Y)[0]).any()


def test_cells_run_on_the_host_and_say_so(in_use):
    Y, kernel = clusters(2), GaussianKernel()
    with pytest.warns(UserWarning, match="CellSums runs on the CPU"):
        found, force = sums(in_use, CellSums(), kernel, Y)
    expected = CellSums().sums(kernel, Y)
    np.testing.assert_array_equal(found, expected.kernel_sums)
    np.testing.assert_array_equal(force, expected.force)
    moments = CellSums().moments(kernel, in_use.array(Y))
    np.testing.assert_array_equal(in_use.host(moments), CellSums().moments(kernel, Y))


@pytest.mark.parametrize("loss", [tsne, sne, elastic])
def test_objectives_copy_nothing_but_scalars(in_use, loss):
    rng = np.random.default_rng(0)
    Y, W = clusters(2, 100), rng.uniform(size=(200, 200))
    W = W + W.T
    np.fill_diagonal(W, 0)
    W /= W.sum(axis=1, keepdims=True) if loss is sne else W.sum()
    engine = FFTInterpolation(resolution=1e-9)
    objective = replace(loss(W), pair_sums=engine)
    expected, gradient = objective.value_and_gradient(Y)
    given = in_use.array(Y)
    objective.value_and_gradient(given)
    before = dict(COPIES)
    value, found = objective.value_and_gradient(given)
    if in_use.name == "emulated":
        assert dict(COPIES) == before
    assert value == pytest.approx(expected, rel=1e-6)
    assert relative(in_use.host(found), gradient) <= 1e-5


@pytest.mark.parametrize("method", [TSNE, ElasticEmbedding])
def test_estimators_interpolate_if_asked(device, assert_searched_alike, method):
    X = np.random.default_rng(0).normal(size=(60, 4))
    options = {"max_iter": 5, "optimizer": "lbfgs", "init": "pca"}
    if method is ElasticEmbedding:
        options |= {"weight": 10.0, "repulsion": "uniform"}
    engine = FFTInterpolation()
    with using_pair_sums(engine):
        model = method(device=device, **options).fit(X)
        expected = method(**options).fit(X)
    assert model.pairs_ == "FFTInterpolation, as requested"
    assert len(engine._transforms) == 0  # which the fit has not changed
    exact, same = (replace(model.objective_, pair_sums=each) for each in (Exact(), engine))
    assert same.value(model.embedding_) == pytest.approx(model.loss_, rel=1e-6)
    assert exact.value(model.embedding_) == pytest.approx(model.loss_, rel=4e-4)  # as documented
    assert_searched_alike(model, expected)
    assert isinstance(default_pair_sums(), Fastest)  # again
    wrong = pytest.raises(TypeError, match="pair_sums='fft' must be an instance of PairSums")
    with wrong, using_pair_sums("fft"):
        pass


def test_models_tell_that_sums_were_exact_on_the_device(device):
    X = np.random.default_rng(0).normal(size=(60, 4))
    engine = Fastest(exact_up_to=10)
    with using_pair_sums(engine):
        model = SymmetricSNE(device=device, max_iter=3, init="pca").fit(X)
    assert model.pairs_.startswith(f"exact, on {device.name}: at most exact_on_device_up_to=200000")
