"""Gaps, clusters, signs and acceptance of eigenpairs."""

import warnings

import numpy as np
import pytest

from manifoldry.eigen import Dense, PairSolver, SolverFailed, SpectralProblem
from manifoldry.eigen.spectrum import Spectrum, cluster_gaps, cluster_width, fixed_signs
from manifoldry.exceptions import ConvergenceWarning

EPS = np.finfo(float).eps


class Given(PairSolver):
    """Solver that returns given vectors."""

    def __init__(self, vectors):
        self.vectors = vectors

    def _basis(self, standard, k, rng):
        return self.vectors[:, :k]


def spectrum(values, residuals, next_value=np.nan, norm=1.0):
    values = np.asarray(values, dtype=float)
    known = np.append(values, next_value) if np.isfinite(next_value) else values
    gaps = cluster_gaps(known, cluster_width(norm))[: len(values)]
    vectors = np.eye(len(values))
    return Spectrum(values, vectors, np.asarray(residuals, float), gaps, next_value, norm)


def test_gap_is_the_smaller_of_both_sides():
    np.testing.assert_allclose(cluster_gaps(np.array([0.0, 2, 3, 7]), 0.1), [2, 1, 1, 4])
    np.testing.assert_allclose(cluster_gaps(np.array([7.0, 3, 2, 0]), 0.1), [4, 1, 1, 2])
    assert np.isinf(cluster_gaps(np.array([1.0, 1.0]), 0.1)).all()


def test_residual_is_measured_against_the_gap_not_the_norm():
    assert spectrum([1e-9, 3e-9], [1e-13, 1e-13], 6e-9).accepted
    mixed = spectrum([1e-9, 3e-9], [1e-13, 1e-10], 6e-9)
    assert not mixed.accepted
    assert mixed.worst == 1
    assert mixed.worst_ratio == pytest.approx(1e-10 / 2e-12)


def test_shifting_the_operator_does_not_change_clusters():
    # 1 − λ for eigenvalues λ of a Laplacian: close to a common value, but resolved.
    values = np.array([1e-10, 4e-10, 9e-10])
    assert len(spectrum(values, [0, 0, 0]).clusters) == 3
    assert len(spectrum(1 - values, [0, 0, 0]).clusters) == 3
    assert len(spectrum(values, [0, 0, 0], norm=1e6).clusters) == 1


def test_split_cluster_is_flagged_and_still_accepted():
    cut = spectrum([1.0, 2.0], [1e-15, 1e-15], 2.0 + 100 * EPS, norm=2.0)
    assert cut.splits_cluster
    assert cut.accepted
    assert not spectrum([1.0, 2.0], [0, 0], 2.1).splits_cluster
    assert not spectrum([1.0, 2.0], [0, 0]).splits_cluster


def test_cluster_without_a_known_end_still_needs_small_residuals():
    assert spectrum([0.0, 0.0], [1e-12, 1e-12], 0.0).accepted
    assert not spectrum([0.0, 0.0], [1e-3, 1e-3], 0.0).accepted


def test_not_a_number_is_never_accepted():
    assert not spectrum([0.0, 1.0], [np.nan, 0.0], 2.0).accepted


def test_zero_operator_is_accepted():
    problem = SpectralProblem(np.zeros((4, 4)), end="smallest")
    result = Dense().solve(problem, 2, np.random.default_rng(0))
    assert result.accepted
    assert result.splits_cluster


def test_mixed_eigenvectors_are_reported_with_numbers():
    # An equal mixture of two eigenvectors, completed by an unrelated vector.
    A = np.diag([0.0, 1e-4, 2e-4, 1.0])
    V = np.eye(4)[:, [0, 1, 3]]
    V[:, 1] = [0, 1, 1, 0] / np.sqrt(2)
    problem = SpectralProblem(A, end="smallest")
    with pytest.warns(ConvergenceWarning, match=r"Given left eigenvector 1 .* 5\.0e-05"):
        result = Given(V).solve(problem, 2, np.random.default_rng(0))
    assert not result.accepted
    assert result.residuals[1] == pytest.approx(5e-5)


def test_gap_is_not_overestimated_if_the_next_pair_has_not_converged():
    # The third pair has a residual of 0.5, so the gap of the second is unknown.
    A = np.diag([0.0, 0.5, 0.5 + 1e-6, 1.5])
    V = np.eye(4)[:, :3]
    V[:, 1] = [0, np.cos(0.3), np.sin(0.3), 0]  # residual 3e-7
    V[:, 2] = [0, -np.sin(0.3), np.cos(0.3), 1]
    problem = SpectralProblem(A, end="smallest")
    with pytest.warns(ConvergenceWarning):
        result = Given(V).solve(problem, 2, np.random.default_rng(0))
    assert not result.accepted


def test_good_pairs_do_not_warn():
    problem = SpectralProblem(np.diag([1.0, 2, 4, 8]), end="largest")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = Given(np.eye(4)[:, ::-1]).solve(problem, 2, np.random.default_rng(0))
    np.testing.assert_allclose(result.values, [8, 4])
    np.testing.assert_allclose(result.gaps, [4, 2])
    assert result.next_value == 2


def test_sign_of_the_first_among_equals_is_positive():
    V = np.array([[0.1, -1.0, 0.0], [-2.0, 1.0 + 1e-12, 0.0], [1.0, 0.0, 0.0]])
    expected = np.array([[-0.1, 1.0, 0.0], [2.0, -1.0 - 1e-12, 0.0], [-1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(fixed_signs(V), expected)


def test_first_pairs_keep_the_following_eigenvalues():
    problem = SpectralProblem(np.diag(np.arange(9.0)), end="smallest")
    first = Dense().solve(problem, 5, np.random.default_rng(0)).first(2)
    assert first.next_value == pytest.approx(2)
    np.testing.assert_allclose(first.computed, np.arange(6), atol=1e-12)


def test_summary_contains_solver_residual_and_gap():
    problem = SpectralProblem(np.diag([1.0, 2, 4, 8]), end="largest")
    result = Dense().solve(problem, 2, np.random.default_rng(0))
    text = result.summary()
    assert "Dense" in text
    assert "residual" in text
    assert f"gap {result.gaps[result.worst]:.1e}" in text
    assert "(accepted)" in text


@pytest.mark.parametrize(
    ("vectors", "error", "message"),
    [
        (np.eye(4)[:, :1], TypeError, r"must return an array of shape \(4, 3\).*shape \(4, 1\)"),
        (np.eye(5), TypeError, r"shape \(4, 3\) or with more columns, not ndarray of shape \(5, 3"),
        (np.full((4, 4), np.nan), SolverFailed, "NaN or infinite entries"),
    ],
)
def test_what_a_solver_returns_is_checked(vectors, error, message):
    problem = SpectralProblem(np.diag(np.arange(4.0)), "largest")
    with pytest.raises(error, match=message):
        Given(vectors).solve(problem, 2, np.random.default_rng(0))
