"""Approximate sums over pairs against exact ones."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.objectives import (
    CellSums,
    ComplementKernel,
    Exact,
    Fastest,
    FFTInterpolation,
    GaussianKernel,
    Pairwise,
    StudentKernel,
    sne,
)
from manifoldry.objectives.cell_list import CellList
from manifoldry.util.threads import threads_allowed

KERNELS = (
    GaussianKernel(),
    StudentKernel(),
    StudentKernel(0.5),
    StudentKernel(3.0),
    ComplementKernel(StudentKernel(), epsilon=0.5),
)
ENGINES = {"fft": FFTInterpolation(), "cells": CellSums()}


def clusters(d, n=500, seed=0):
    """Two clusters, smaller ones in three dimensions, where meshes are large."""
    rng = np.random.default_rng(seed)
    Y = np.concatenate([rng.normal(size=(n, d)) * 4, rng.normal(size=(n, d)) * 2 + 9])
    return Y / 4 if d == 3 else Y


def charges(n, seed=1):
    return np.random.default_rng(seed).uniform(size=n)


def relative(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def test_options_are_checked():
    with pytest.raises(TypeError, match=r"fft=0.25 must be an instance of FFTInterpolation"):
        Fastest(fft=0.25)
    with pytest.raises(TypeError, match="cells=1e-06 must be an instance of CellSums"):
        Fastest(cells=1e-6)
    with pytest.raises(ValueError, match="exact_up_to=-1 must be at least 0"):
        Fastest(exact_up_to=-1)
    with pytest.raises(ValueError, match="max_nodes=0 must be greater than 0"):
        Fastest(max_nodes=0)
    for approximation in (Fastest, FFTInterpolation, CellSums):
        with pytest.raises(TypeError, match="exact=True must be an instance of Exact"):
            approximation(exact=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_interpolated_sums_are_as_accurate_as_stated(d, kernel, weighted):
    Y = clusters(d)
    weights = charges(len(Y)) if weighted else None
    expected, moments = Exact().sums(kernel, Y, weights), Exact().moments(kernel, Y, weights)
    errors = []
    for spacing in (0.4, 0.25):
        fft = FFTInterpolation(spacing, min_cells=1)
        found = fft.sums(kernel, Y, weights)
        assert relative(found.kernel_sums, expected.kernel_sums) <= 2e-3
        errors.append(relative(found.force, expected.force))
        assert relative(fft.moments(kernel, Y, weights), moments) <= 0.05
    assert errors[0] <= 0.04
    assert errors[1] <= errors[0] / 2  # the third power would be a quarter


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_cells_leave_out_only_negligible_pairs(d, weighted):
    Y, kernel = clusters(d), GaussianKernel()
    weights = charges(len(Y)) if weighted else None
    expected, found = (engine.sums(kernel, Y, weights) for engine in (Exact(), CellSums()))
    bound = CellSums().negligible * len(Y)
    np.testing.assert_allclose(found.kernel_sums, expected.kernel_sums, rtol=0, atol=bound)
    np.testing.assert_allclose(found.force, expected.force, rtol=0, atol=10 * bound)
    moments = CellSums().moments(kernel, Y, weights)
    np.testing.assert_allclose(
        moments, Exact().moments(kernel, Y, weights), rtol=0, atol=100 * bound
    )


def test_points_are_sorted_into_cells_once(monkeypatch):
    Y, kernel = 300 * np.random.default_rng(0).normal(size=(3000, 2)), GaussianKernel()
    sort, sorted_ = CellList.of, []
    monkeypatch.setattr(CellList, "of", lambda *args: sorted_.append(args) or sort(*args))
    for name, count in (("sums", 1), ("moments", 2)):
        found, expected = (getattr(e, name)(kernel, Y) for e in (Fastest(), CellSums()))
        np.testing.assert_array_equal(found[0], expected[0])
        assert len(sorted_) == 2 * count  # once by each


@pytest.mark.parametrize("d", [1, 2, 3])
def test_interpolated_forces_are_the_gradient_of_interpolated_sums(d):
    """So that line searches, which compare values with slopes, work."""
    Y, kernel, fft = clusters(d, 100), StudentKernel(), FFTInterpolation(0.5)
    V = np.random.default_rng(2).normal(size=Y.shape)
    h = 1e-5
    up, down = (fft.sums(kernel, Y + s * V).kernel_sums.sum() for s in (h, -h))
    slope = -4 * float((fft.sums(kernel, Y).force * V).sum())
    assert (up - down) / (2 * h) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("name", ENGINES)
def test_results_do_not_depend_on_threads_or_order(name):
    Y, engine, kernel = clusters(2), ENGINES[name], GaussianKernel()
    with threads_allowed(1):
        alone = engine.sums(kernel, Y)
    with threads_allowed(3):
        together = engine.sums(kernel, Y)
    np.testing.assert_array_equal(alone.kernel_sums, together.kernel_sums)
    np.testing.assert_array_equal(alone.force, together.force)
    order = np.random.default_rng(3).permutation(len(Y))
    permuted = engine.sums(kernel, Y[order])
    np.testing.assert_allclose(permuted.force, alone.force[order], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ENGINES)
def test_single_precision_in_and_out(name):
    Y = clusters(2).astype(np.float32)
    sums = ENGINES[name].sums(GaussianKernel(), Y)
    assert sums.force.dtype == np.float32
    assert sums.kernel_sums.dtype == np.float64
    assert ENGINES[name].moments(GaussianKernel(), Y).dtype == np.float32


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("scale", [0.0, 1e-12, 1e-3])
def test_small_embeddings(name, scale):
    """Even points in one place have a kernel sum; forces vanish like distances."""
    Y = scale * clusters(2, 50)
    sums = ENGINES[name].sums(GaussianKernel(), Y)
    np.testing.assert_allclose(sums.kernel_sums, len(Y) - 1, rtol=1e-3)
    expected = Exact().sums(GaussianKernel(), Y).force
    assert np.abs(sums.force - expected).max() <= 2e-3 * np.abs(expected).max() + 1e-11


def test_weights_of_pairs_are_exact():
    Y = clusters(2, 50)
    W = np.random.default_rng(4).uniform(size=(100, 100))
    W = W + W.T
    for engine in (*ENGINES.values(), Fastest(exact_up_to=1)):
        for weights in (W, sparse.csr_array(W)):
            found = engine.sums(GaussianKernel(), Y, weights)
            expected = Exact().sums(GaussianKernel(), Y, weights)
            np.testing.assert_array_equal(found.force, expected.force)


class TestChoice:
    def test_few_points_and_many_dimensions_are_exact(self):
        Y = clusters(2, 100)
        assert Fastest().choose(StudentKernel(), Y).reason.startswith("exact: at most")
        Y = np.zeros((3000, 4))
        assert Fastest().choose(StudentKernel(), Y).reason.startswith("exact: more than 3")

    @pytest.mark.parametrize(
        ("kernel", "spread", "engine"),
        [
            (GaussianKernel(), 10.0, FFTInterpolation),
            (GaussianKernel(), 1e3, CellSums),
            (GaussianKernel(), 1e20, Exact),
            (StudentKernel(), 30.0, FFTInterpolation),
            (StudentKernel(), 1e6, Exact),
        ],
    )
    def test_by_the_size_of_the_embedding(self, kernel, spread, engine):
        Y = spread * np.random.default_rng(0).uniform(size=(3000, 2))
        choice = Fastest().choose(kernel, Y)
        assert type(choice.pair_sums) is engine
        assert "s of processor time" in choice.reason
        found, expected = Fastest().sums(kernel, Y), Exact().sums(kernel, Y)
        np.testing.assert_allclose(
            found.kernel_sums, expected.kernel_sums, rtol=0.02, atol=0.02 * found.kernel_sums.mean()
        )

    def test_weights_that_are_not_finite_are_left_to_the_optimizer(self):
        Y = clusters(2, 2000)
        Y[3] = np.nan
        assert np.isnan(Fastest().sums(StudentKernel(), Y).kernel_sums).any()


def test_a_mesh_that_does_not_fit_in_memory_is_refused():
    Y = np.array([[0.0, 0.0], [1e9, 1e9]])
    with pytest.raises(MemoryError, match=r"extent 1e\+09 .*pair_sums=Fastest\(\)"):
        FFTInterpolation().sums(StudentKernel(), Y)


def test_transforms_are_kept_for_embeddings_of_similar_size_but_not_in_models():
    Y, fft = clusters(2), FFTInterpolation()
    fft.sums(StudentKernel(), Y)
    first = fft._transforms[-1].mesh_kernel
    fft.sums(StudentKernel(), 1.001 * Y)
    assert fft._transforms[-1].mesh_kernel is first
    fft.sums(GaussianKernel(), Y)
    assert len(fft._transforms) == 2
    assert len(Fastest(fft=fft).without_cache().fft._transforms) == 0


def test_points_far_from_all_others_have_accurate_logarithms():
    """The logarithm of a kernel sum of 1e-20 is known, though its interpolation is not."""
    rng = np.random.default_rng(0)
    Y = np.concatenate([rng.normal(size=(200, 2)), [[9.0, 0.0], [0.0, -9.0]]])
    P = rng.uniform(size=(202, 202))
    np.fill_diagonal(P, 0)
    exact = sne(P / P.sum(axis=1, keepdims=True))
    fast = Pairwise(
        exact.affinity,
        exact.kernel,
        exact.normalizer,
        constant=exact.constant,
        pair_sums=FFTInterpolation(),
    )
    (value, G), (expected, H) = (o.value_and_gradient(Y) for o in (fast, exact))
    assert value == pytest.approx(expected, rel=1e-4)
    assert relative(G, H) <= 1e-2
