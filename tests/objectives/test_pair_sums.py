"""Sums over pairs: compiled loops and numpy against whole matrices and scipy's densities."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import t as student

from manifoldry.objectives import pair_sums
from manifoldry.objectives.pair_sums import (
    gaussian_moments,
    gaussian_sums,
    student_moments,
    student_sums,
    weighted_gaussian_moments,
    weighted_gaussian_sums,
)
from manifoldry.util.threads import threads_allowed

TOLERANCE = {np.float32: 2e-6, np.float64: 1e-13}


@pytest.fixture(params=["numpy", "compiled"])
def path(request, monkeypatch):
    monkeypatch.setattr(pair_sums, "_LARGE", 0.0 if request.param == "compiled" else np.inf)


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(pair_sums, "_LARGE", 0.0)


def points(n, d, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(dtype)


def kernel(D, dof):
    """κ and u; Student's density is that of scipy, one at zero."""
    if dof is None:
        return np.exp(-D), np.ones_like(D)
    return student.pdf(np.sqrt(D), dof) / student.pdf(0, dof), 1 + D / dof


def expected(targets, sources=None, weights=1.0, dof=None):
    """Mass, force and second moments by whole matrices in double precision."""
    T = np.asarray(targets, float)
    S = T if sources is None else np.asarray(sources, float)
    K, u = kernel(cdist(T, S, "sqeuclidean"), dof)
    K = K * weights
    if sources is None:
        np.fill_diagonal(K, 0)
    steps = T[:, None] - S
    force = np.einsum("ij,ijc->ic", K / u, steps)
    return K.sum(axis=1), force, np.einsum("ij,ijc->ic", K / u**2, steps**2)


def check(sums, moments, wanted, dtype):
    """Errors are relative to the largest figure, since forces cancel."""
    assert sums.mass.dtype == np.float64
    assert sums.force.dtype == moments.dtype == dtype
    for found, right in zip((*sums, moments), wanted, strict=True):
        assert found.shape == right.shape
        assert np.abs(found - right).max() <= TOLERANCE[dtype] * np.abs(right).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("path")
class TestAgainstWholeMatrices:
    """Not all combinations: each is compiled by itself, and they share one body."""

    @pytest.mark.parametrize("d", [1, 2, 3, 5])
    def test_gaussian(self, d, dtype):
        Y = points(1300, d, dtype)  # more than a tile, and no multiple of one
        check(gaussian_sums(Y), gaussian_moments(Y), expected(Y), dtype)

    @pytest.mark.parametrize(("d", "dof"), [(2, 1.0), (3, 1.0), (5, 1.0), (2, 0.5), (2, 3.0)])
    def test_student(self, d, dof, dtype):
        Y = points(301, d, dtype)
        wanted = expected(Y, dof=dof)
        check(student_sums(Y, dof=dof), student_moments(Y, dof=dof), wanted, dtype)

    @pytest.mark.parametrize("d", [1, 5])
    def test_other_sources_with_charges(self, d, dtype):
        T, S = points(45, d, dtype), points(77, d, dtype, seed=1)
        a = points(77, 1, dtype, seed=2)[:, 0]
        check(student_sums(T, S, a), student_moments(T, S, a), expected(T, S, a, dof=1), dtype)

    @pytest.mark.parametrize("weight_dtype", [np.float32, np.float64])
    def test_weights(self, dtype, weight_dtype):
        Y, W = points(66, 2, dtype), np.abs(points(66, 66)).astype(weight_dtype)
        W += W.T
        wanted = expected(Y, weights=W.astype(float))
        check(weighted_gaussian_sums(Y, W), weighted_gaussian_moments(Y, W), wanted, dtype)


@pytest.mark.usefixtures("path")
class TestExtremes:
    def test_charges_of_the_targets_themselves(self):
        Y, a = points(30, 2), np.arange(30)
        check(gaussian_sums(Y, charges=a), gaussian_moments(Y, charges=a),
              expected(Y, weights=a), np.float64)  # fmt: skip

    def test_a_point_alone(self):
        for sums in (gaussian_sums, student_sums):
            mass, force = sums(np.array([[1.0, 2.0]]))
            assert mass.tolist() == [0]
            assert force.tolist() == [[0, 0]]

    def test_no_targets_and_no_sources(self):
        Y, nobody = points(4, 2), np.empty((0, 2))
        assert gaussian_sums(nobody, Y).force.shape == (0, 2)
        assert gaussian_sums(nobody).mass.shape == (0,)
        assert student_sums(Y, nobody).mass.tolist() == [0] * 4

    def test_coincident_points(self):
        Y = np.full((40, 2), 3.7, np.float32)
        for sums in (gaussian_sums, student_sums):
            mass, force = sums(Y)
            assert (mass == 39).all()
            assert (force == 0).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("far", [1e2, 1e15, 1e30])
    @pytest.mark.filterwarnings("error")
    def test_far_points_do_not_touch(self, dtype, far):
        Y = np.array([[0, 0], [0, 1], [far, far]], dtype)
        mass, force = gaussian_sums(Y)
        assert mass == pytest.approx([np.exp(-1), np.exp(-1), 0], abs=0, rel=1e-6)
        assert (force[2] == 0).all()
        assert (gaussian_moments(Y)[2] == 0).all()
        for dof in (1.0, 2.5):
            sums, moments = student_sums(Y, dof=dof), student_moments(Y, dof=dof)
            assert np.isfinite(sums.mass).all()
            assert np.isfinite(sums.force).all()
            assert np.isfinite(moments).all()
            assert sums.mass[2] < 1e-3

    def test_not_a_number_is_not_hidden(self):
        Y = np.array([[0, 0], [1, np.nan], [2, 0]], np.float32)
        for sums in (gaussian_sums(Y), student_sums(Y)):
            assert np.isnan(sums.mass).all()
            assert np.isnan(sums.force[:, 1]).all()

    def test_far_offset_costs_no_digits(self):
        Y = np.round(points(50, 2) * 2**10) / 2**10
        assert (gaussian_sums(Y).mass == gaussian_sums(Y + 2.0**30).mass).all()

    def test_small_masses_keep_their_digits(self):
        """A point's own κ(0) = 1 must not have been in the sum."""
        Y = np.array([[0.0], [5.0]])
        assert gaussian_sums(Y).mass == pytest.approx(np.exp(-25), rel=1e-14, abs=0)

    def test_layout_and_permission_do_not_matter(self):
        Y, W = points(30, 2), np.abs(points(30, 30))
        W += W.T
        mass, force = weighted_gaussian_sums(Y, W)
        frozen, big = np.asfortranarray(Y), np.zeros((60, 60))
        frozen.flags.writeable = False
        big[::2, ::2] = W
        for V in (np.asfortranarray(W), big[::2, ::2]):
            again = weighted_gaussian_sums(frozen, V)
            assert (again.mass == mass).all()
            assert (again.force == force).all()

    def test_wrong_shapes_are_refused(self):
        Y = points(5, 2)
        with pytest.raises(ValueError, match="2 coordinates and sources 3"):
            gaussian_sums(Y, points(4, 3))
        with pytest.raises(ValueError, match=r"\(1, 4\) must be \(5,\)"):
            gaussian_sums(Y, charges=np.ones(4))


@pytest.mark.usefixtures("compiled")
def test_rows_do_not_depend_on_threads_or_blocks(monkeypatch):
    Y = points(700, 2, np.float32)
    with threads_allowed(1):
        alone = gaussian_sums(Y)
    monkeypatch.setattr(pair_sums, "_BLOCK", 10_000)
    with threads_allowed(3):
        together = gaussian_sums(Y)
    assert (alone.mass == together.mass).all()
    assert (alone.force == together.force).all()


def test_small_sums_compile_nothing(monkeypatch):
    monkeypatch.setattr(pair_sums, "_LARGE", 10**2)
    monkeypatch.setattr(pair_sums, "_compiled", None)
    gaussian_sums(points(10, 2))
    with pytest.raises(TypeError):
        gaussian_sums(points(11, 2))


@pytest.mark.parametrize(
    ("dtype", "last", "error"), [(np.float32, 87.3, 1.2e-7), (np.float64, 708.3, 5e-16)]
)
def test_exponential(dtype, last, error):
    from manifoldry.objectives import kernels

    exp_minus = kernels.exp_minus32 if dtype == np.float32 else kernels.exp_minus64
    t = np.concatenate([np.linspace(0, last, 30_001), np.logspace(-9, 0, 1000)]).astype(dtype)
    true = np.exp(-t.astype(np.longdouble))
    assert np.abs(np.array([exp_minus(x) for x in t]) / true - 1).max() <= error
    assert exp_minus(dtype(0)) == 1
    for far in (1.01 * last, 1e30, np.inf):
        assert exp_minus(dtype(far)) == 0


def test_single_precision_at_ten_thousand_points():
    Y = points(10_000, 2, np.float32) * 3
    some = Y[:100]
    for sums, dof in ((gaussian_sums, None), (student_sums, 1)):
        mass, force, _ = expected(some, Y, dof=dof)
        found = sums(Y)
        assert found.mass[:100] == pytest.approx(mass - 1, rel=3e-7)
        length = np.linalg.norm(force, axis=1)
        assert (np.linalg.norm(found.force[:100] - force, axis=1) < 3e-6 * length).all()
