"""Non-redundant coordinates on a device are those of the CPU."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from manifoldry import LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import make_strip
from manifoldry.device import device_of, using_device
from manifoldry.device.emulated import EmulatedArray, EmulatedDevice
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.nonredundant import (
    GradientCriterion,
    KernelSmoother,
    PredictionCriterion,
    block_iteration,
    minimizer,
)
from manifoldry.nonredundant.excluded import excluding
from manifoldry.nonredundant.gradients import EarlierGradients, quadratic
from manifoldry.nonredundant.minimizer import EnergyMinimizer
from manifoldry.nonredundant.on_device import DeviceGradients
from manifoldry.nonredundant.sequence import SequentialSolver, without_constant
from manifoldry.nonredundant.smoother import smoother_functions

RNG = np.random.default_rng(0)


def clusters(n):
    """Points around a few centers in 10 dimensions, whose eigenvalues have wide gaps."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 10)) + rng.normal(size=(6, 10))[rng.integers(6, size=n)]


def posed(n):
    return without_constant(LaplacianEigenmaps(2, n_neighbors=10).pose(clusters(n)).problems[0])


@pytest.fixture(scope="module")
def problem():
    return posed(800)


@pytest.fixture(scope="module")
def graph(problem):
    W = -sparse.csr_array(problem.operator)
    W.setdiag(0.0)
    W.eliminate_zeros()
    return W


@pytest.fixture
def coordinates():
    X = clusters(800)
    return np.column_stack([X[:, 0], np.sin(X[:, 1]), X[:, 2] ** 2])


def gradients_on(device, W, F):
    return DeviceGradients(W, F, compiled_above=0, device=device)


def test_penalty(in_use, graph, coordinates):
    expected = EarlierGradients(graph, coordinates, compiled_above=0, single_up_to=0)
    gradients, X = gradients_on(in_use, graph, coordinates), RNG.normal(size=(800, 3))
    products, known = gradients.penalty_products, expected.penalty_products
    for a, b in zip(products(in_use.array(X)), known(X), strict=True):
        np.testing.assert_allclose(in_use.host(a), b, rtol=1e-9, atol=1e-9)
    for name in ("degree", "diagonal"):
        np.testing.assert_allclose(
            in_use.host(getattr(products, name)), getattr(known, name), rtol=1e-10
        )
    assert gradients.fraction(X[:, 0]) == pytest.approx(expected.fraction(X[:, 0]), rel=1e-10)


def test_weights_of_any_scale(in_use, graph, coordinates):
    f = RNG.normal(size=800)
    tiny, plain = (gradients_on(in_use, c * graph, coordinates).fraction(f) for c in (1e-200, 1))
    assert tiny == pytest.approx(plain)


def test_functions_of_least_energy(in_use, problem, graph, coordinates):
    """The same random start leads to the same function."""
    spectra = []
    for device in (None, in_use):
        energies = EnergyMinimizer(
            problem, np.random.default_rng(0), factorize=False, device=device
        )
        gradients = EarlierGradients(graph, coordinates, compiled_above=0, single_up_to=0)
        if device is not None:
            gradients = gradients_on(device, graph, coordinates)
        search = energies.orthogonal_to(quadratic(coordinates))
        spectra.append((search.eigenvector(), search.penalized(gradients.penalty_products, 16)))
    for expected, found in zip(*spectra, strict=True):
        assert type(found.vectors) is np.ndarray
        # Searches end at an estimated error of one percent; rounding hardly changes where they are.
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-4)
        np.testing.assert_allclose(
            found.vectors, expected.vectors, atol=1e-4 * expected.vectors.max()
        )


def test_no_long_array_is_copied_in_an_iteration(problem, coordinates, monkeypatch):
    sizes, copy = [], EmulatedArray.get

    def counted_copy(array):
        sizes.append(array.size)
        return copy(array)

    def counted_search(*arguments, **options):
        sizes.clear()
        found = block_iteration.smallest_pairs(*arguments, **options)
        assert found.iterations > 2
        assert len(sizes) > found.iterations
        assert max(sizes) < 100
        return found

    monkeypatch.setattr(EmulatedArray, "get", counted_copy)
    monkeypatch.setattr(minimizer, "smallest_pairs", counted_search)
    with using_device(EmulatedDevice()) as device:
        energies = EnergyMinimizer(problem, RNG, factorize=False, device=device)
        assert energies.orthogonal_to(coordinates).eigenvector() is not None


@pytest.mark.parametrize(
    ("n", "smoother"),
    [
        (1500, KernelSmoother()),
        (1500, KernelSmoother("local_linear")),
        (1500, KernelSmoother(tol=0)),
        (4500, KernelSmoother()),
    ],
    ids=["exact", "linear", "matrix", "sampled"],
)
def test_functions_of_a_smoother(in_use, n, smoother):
    F, mass = clusters(n)[:, :3], RNG.uniform(1, 2, size=n)
    with using_device("cpu"):
        expected = smoother_functions(F, mass, 0.5, smoother)
    found = smoother_functions(F, mass, 0.5, smoother)
    assert device_of(found.values) is in_use
    assert found.values.dtype == expected.values.dtype
    if n > 1500:  # in single precision other points may be drawn
        assert found.count == pytest.approx(expected.count, abs=3)
        return
    assert found.count == expected.count
    np.testing.assert_allclose(found.singular_values, expected.singular_values, rtol=1e-6)
    bases = [np.sqrt(mass)[:, None] * v for v in (expected.values, in_use.host(found.values))]
    cosines = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    np.testing.assert_allclose(cosines, 1, atol=1e-6)


def test_many_constraints(in_use, problem):
    """They span the same on both, also where some functions nearly depend on others."""
    F = clusters(800)[:, :2]
    near = F[:, :1] + 0.03 * RNG.normal(size=(800, 1))
    values = np.column_stack([F[:, 1:], near, RNG.normal(size=(800, 80))])
    values = (values / np.linalg.norm(values, axis=0)).astype(np.float32)
    root = np.sqrt(problem.mass)[:, None]
    expected = root * excluding(problem, F, values).constraint
    C = excluding(problem, F, in_use.array(values)).constraint
    assert device_of(C) is in_use
    found = root * in_use.host(C)
    assert found.shape == expected.shape
    bases = [np.linalg.qr(B)[0] for B in (expected, found)]
    cosines = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    np.testing.assert_allclose(cosines, 1, atol=1e-5)


@pytest.mark.parametrize("criterion", [GradientCriterion(), PredictionCriterion(0.5)])
def test_next_coordinate(in_use, criterion):
    """From the same earlier coordinates and the same random start."""
    solver, problem, found = SequentialSolver(criterion, "auto"), posed(5100), []
    with using_device("cpu"):
        known = solver.solve(problem, 2, np.random.default_rng(0))
    for device in ("cpu", in_use):
        with using_device(device):
            rng = np.random.default_rng(1)
            prepared = replace(known, graph_problem=solver.prepared(known, rng))
            found.append(solver.extended(prepared, 3, rng).coordinates[2])
    expected, found = found
    assert found.description == expected.description
    np.testing.assert_allclose(found.spectrum.values, expected.spectrum.values, rtol=2e-6)
    assert found.error == pytest.approx(expected.error, abs=1e-4)
    assert abs(np.corrcoef(found.f, expected.f)[0, 1]) > 1 - 1e-6


@pytest.mark.parametrize("criterion", ["gradient", "prediction"])
def test_estimator(in_use, criterion):
    X = clusters(1200)
    models = []
    for device in ("cpu", in_use):
        with using_device(device):
            model = NonRedundant(LaplacianEigenmaps(n_neighbors=10), 3, criterion=criterion)
            models.append(model.fit(X))
    expected, found = models
    assert found.coordinate_descriptions_ == expected.coordinate_descriptions_
    np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-6)
    np.testing.assert_allclose(found.unpredictability_, expected.unpredictability_, atol=1e-3)
    scale = np.abs(expected.embedding_).max()
    np.testing.assert_allclose(found.embedding_, expected.embedding_, atol=1e-3 * scale)
    np.testing.assert_allclose(found.transform(X), found.embedding_, atol=1e-6 * scale)


def test_narrow_gaps_are_left_to_a_factorization_on_the_cpu(in_use):
    X, _ = make_strip(5100, aspect=3.5, random_state=0)
    with pytest.warns(ManifoldryWarning, match="search for coordinates runs on the CPU"):
        model = NonRedundant(LaplacianEigenmaps()).fit(X)
    assert "EnergyMinimizer" in model.solver_
    assert model.unpredictability_[1] > 0.9


def test_a_smoother_of_nearest_neighbors_runs_on_the_cpu(in_use):
    F = clusters(600)[:, :2]
    with pytest.warns(ManifoldryWarning, match=r"kernel smoother runs on the CPU.*nearest"):
        found = smoother_functions(F, np.ones(600), 0.5, KernelSmoother(n_neighbors=50))
    assert type(found.values) is np.ndarray
