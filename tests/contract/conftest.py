"""The estimators that the contract suites run over, and the data they run on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

import manifoldry as mf
from manifoldry.affinity import Entropic
from manifoldry.optimize import EarlyExaggeration
from manifoldry.semidefinite import MethodOfMultipliers
from manifoldry.semidefinite.conformal_eigenmaps import ConformalEigenmaps as Conformal


@dataclass(frozen=True)
class Configuration:
    """An estimator with some parameters, and what is promised about it."""

    id: str
    make: Callable[..., Any]
    takes: str = "data"
    """What ``fit`` is given: "data", "distances", "kernel" or "affinity"."""
    extension_error: float = 1e-12
    """Largest error of the bare extension formula at training rows, in general position."""
    finds_training_rows: bool = True
    """Whether ``transform`` returns training rows to the last bit, whatever the batch."""
    scale_power: float | None = 0
    """p where input times s gives the embedding times sᵖ; None where it does not scale."""
    moves: bool = False
    """Whether the embedding changes when a constant is added to the data."""
    linear: bool = False
    """Whether the map is affine: constant data are then a right, if dull, input."""
    on_graph: bool = False
    """Whether neighbors matter: disconnected data are then laid out in components."""
    on_sheet: bool = False
    """Whether it recovers the metric of a sheet: components keep the sheet's size, the number of
    coordinates is the sheet's dimension, so that fewer of them are another problem."""
    counted_by: str = "n_components"
    """The parameter that says how many coordinates there are."""
    keeps_pairs: bool = False
    """Whether the model keeps a fraction of all pairs of points, as its documentation says."""
    iterative: bool = False
    """Whether the map is found step by step; it is the end of a search, not an eigenvector."""
    mixed: bool = False
    """Whether coordinates are mixtures of eigenvectors that a search of its own has found."""
    reproducibility: float = 1e-9
    """How far two maps of the same data may part that differ by rounding only, relative to their
    size; every step of a search multiplies the difference a little."""

    @property
    def has_perplexity(self):
        """Whether it reads a graph for its entropic affinities alone."""
        return self.iterative and not self.unfolds and "UKR" not in self.id

    @property
    def unfolds(self):
        """Whether a search of its own keeps lengths, and takes no other optimizer."""
        return "MVU" in self.id

    def starting_at(self, init):
        """Parameters with which the search starts at `init`."""
        return {"optimizer": MethodOfMultipliers(init=init)} if self.unfolds else {"init": init}

    @property
    def refused(self):
        """A parameter that every estimator of its kind refuses."""
        if self.unfolds:
            return {"constraint": "best"}
        return {"optimizer" if self.iterative else "eigen_solver": "best"}

    @property
    def has_kernel(self):
        """Whether its coordinates are eigenvectors of one kernel between points."""
        return not (self.iterative or self.linear or self.one_by_one or self.mixed)

    @property
    def one_by_one(self):
        """Whether every coordinate solves a problem of its own."""
        return "NonRedundant" in self.id

    def input(self, X):
        """What ``fit`` is given for the data `X`."""
        return self.between(X, X)

    def between(self, X_new, X):
        """What ``transform`` is given for new points, the training data being `X`."""
        if self.takes == "data":
            return X_new
        D = cdist(X_new, X)
        if self.takes == "distances":
            return D
        K = np.exp(-((D / np.median(pdist(X))) ** 2))
        # A point is not its own neighbor.
        return K if self.takes == "kernel" else np.where(D == 0, 0.0, K)

    def __repr__(self):
        return self.id


def clustering(n_components=2, **parameters):
    """Spectral clustering; its coordinates are counted by its clusters."""
    return mf.SpectralClustering(n_components, **parameters)


def new(estimator, **parameters):
    """The non-redundant wrapper; whatever it does not take itself is for the estimator."""
    own = {k: parameters.pop(k) for k in mf.NonRedundant().get_params() if k in parameters}
    return mf.NonRedundant(estimator(**parameters), **own)


def search(estimator, **options):
    """An iterative estimator that takes few steps: two fits compare however far they got."""
    steps = {"max_iter": 25, **options}
    return partial(estimator, **steps)


def iterative(id, make, **promises):
    """The extension's error is no rounding: a copy of a point attracts that point as well."""
    return Configuration(id, make, **{"iterative": True, "extension_error": 1.0, **promises})


C, LE = Configuration, mf.LaplacianEigenmaps
IN_UNITS = {"on_graph": True, "scale_power": 1}
ELASTIC = {"perplexity": 6, "weight": 10.0}
SHORT = {"perplexity": 6, "early_exaggeration": EarlyExaggeration(n_iter=10)}
# Steps of a given length overshoot while clusters form, which multiplies rounding; and after so
# few of them points are not yet where their own objective has them.
MOVING = {"reproducibility": 1e-4, "extension_error": 2.0}
UNFOLDING = IN_UNITS
# A new estimator, or a variant with a path of its own, joins with one line here.
ESTIMATORS = [
    C("PCA", mf.PCA, finds_training_rows=False, scale_power=1, linear=True),
    C("ClassicalMDS", mf.ClassicalMDS, finds_training_rows=False, scale_power=1, linear=True),
    C("ClassicalMDS-cityblock", partial(mf.ClassicalMDS, metric="cityblock"), scale_power=1),
    C(
        "ClassicalMDS-additive",
        partial(mf.ClassicalMDS, metric="cityblock", additive_constant=True),
        scale_power=1,
    ),
    C(
        "ClassicalMDS-precomputed",
        partial(mf.ClassicalMDS, metric="precomputed"),
        takes="distances",
        scale_power=1,
    ),
    C("KernelPCA", mf.KernelPCA),
    C("KernelPCA-fixed_point", partial(mf.KernelPCA, inverse="fixed_point")),
    C("KernelPCA-regression", partial(mf.KernelPCA, inverse="regression")),
    C(
        "KernelPCA-linear",
        partial(mf.KernelPCA, kernel="linear"),
        finds_training_rows=False,
        scale_power=1,
        linear=True,
    ),
    C("KernelPCA-poly", partial(mf.KernelPCA, kernel="poly"), scale_power=None, moves=True),
    C(
        "KernelPCA-precomputed",
        partial(mf.KernelPCA, kernel="precomputed"),
        takes="kernel",
        finds_training_rows=False,
        scale_power=0.5,
    ),
    C("LaplacianEigenmaps", LE, on_graph=True),
    C("LaplacianEigenmaps-sym", partial(LE, normalization="sym"), on_graph=True),
    C("LaplacianEigenmaps-none", partial(LE, normalization="none"), on_graph=True),
    C("LaplacianEigenmaps-gaussian", partial(LE, affinity="gaussian"), on_graph=True),
    C("LaplacianEigenmaps-binary", partial(LE, affinity="binary"), on_graph=True),
    C("LaplacianEigenmaps-entropic", partial(LE, affinity=Entropic()), on_graph=True),
    C(
        "LaplacianEigenmaps-radius",
        partial(LE, radius=2.5),
        on_graph=True,
        scale_power=None,
        keeps_pairs=True,
    ),
    C(
        "LaplacianEigenmaps-distances",
        partial(LE, metric="precomputed"),
        takes="distances",
        on_graph=True,
    ),
    C(
        "LaplacianEigenmaps-affinity",
        partial(LE, affinity="precomputed"),
        takes="affinity",
        scale_power=-0.5,
        keeps_pairs=True,
    ),
    C("Isomap", mf.Isomap, on_graph=True, extension_error=1e-7, scale_power=1),
    C(
        "Isomap-landmarks",
        partial(mf.Isomap, n_landmarks=5),
        on_graph=True,
        extension_error=1e-7,
        scale_power=1,
    ),
    C(
        "Isomap-distances",
        partial(mf.Isomap, metric="precomputed"),
        takes="distances",
        on_graph=True,
        extension_error=1e-7,
        scale_power=1,
    ),
    C("DiffusionMaps", mf.DiffusionMaps, on_graph=True, keeps_pairs=True),
    C(
        "DiffusionMaps-steps",
        partial(mf.DiffusionMaps, alpha=0.5, t=2),
        on_graph=True,
        keeps_pairs=True,
    ),
    C(
        "DiffusionMaps-gaussian",
        partial(mf.DiffusionMaps, affinity="gaussian"),
        on_graph=True,
        keeps_pairs=True,
    ),
    C(
        "DiffusionMaps-self_tuning",
        partial(mf.DiffusionMaps, affinity="self_tuning"),
        on_graph=True,
        keeps_pairs=True,
    ),
    C(
        "DiffusionMaps-precomputed",
        partial(mf.DiffusionMaps, affinity="precomputed"),
        takes="affinity",
        keeps_pairs=True,
    ),
    C("LLE", mf.LLE, on_graph=True, extension_error=0.01),
    C("LTSA", mf.LTSA, on_graph=True, extension_error=0.1, scale_power=1, on_sheet=True),
    C(
        "HessianLLE",
        mf.HessianLLE,
        on_graph=True,
        extension_error=0.1,
        scale_power=1,
        on_sheet=True,
    ),
    C(
        "ModifiedLLE",
        mf.ModifiedLLE,
        on_graph=True,
        extension_error=0.1,
        scale_power=1,
        on_sheet=True,
    ),
    C("SpectralClustering", clustering, on_graph=True, counted_by="n_clusters"),
    C("SpectralEmbedding", mf.SpectralEmbedding, on_graph=True, keeps_pairs=True),
    C(
        "SpectralEmbedding-rbf",
        partial(mf.SpectralEmbedding, affinity="rbf"),
        scale_power=None,
        keeps_pairs=True,
    ),
    C(
        "SpectralEmbedding-precomputed",
        partial(mf.SpectralEmbedding, affinity="precomputed"),
        takes="affinity",
        scale_power=-0.5,
        keeps_pairs=True,
    ),
    C("NonRedundant-gradient", partial(new, LE), extension_error=1e-7, on_graph=True),
    C(
        "NonRedundant-prediction",
        partial(new, LE, criterion="prediction"),
        extension_error=1e-6,
        on_graph=True,
    ),
    C(
        "DiffusionMaps-NonRedundant",
        partial(new, mf.DiffusionMaps, criterion="prediction"),
        extension_error=1e-6,
        on_graph=True,
        keeps_pairs=True,
    ),
    C("LLE-NonRedundant", partial(new, mf.LLE), extension_error=0.1, on_graph=True),
    C(
        "NonRedundant-KernelPCA",
        partial(new, mf.KernelPCA, criterion="prediction"),
        extension_error=1e-6,
    ),
    C("LLE-ConformalEigenmaps", Conformal, extension_error=0.01, mixed=True, **IN_UNITS),
    C(
        "ConformalEigenmaps-laplacian",
        partial(Conformal, basis="laplacian"),
        mixed=True,
        **IN_UNITS,
    ),
    iterative("SNE", search(mf.SNE, perplexity=6, init="spectral")),
    iterative(
        "SNE-distances",
        search(mf.SNE, perplexity=6, init="spectral", metric="precomputed"),
        takes="distances",
    ),
    iterative("SymmetricSNE", search(mf.SymmetricSNE, perplexity=6, init="spectral")),
    iterative("TSNE", search(mf.TSNE, **SHORT), **MOVING),
    iterative(
        "TSNE-distances",
        search(mf.TSNE, metric="precomputed", **SHORT),
        takes="distances",
        **MOVING,
    ),
    iterative("ElasticEmbedding", search(mf.ElasticEmbedding, repulsion="uniform", **ELASTIC)),
    iterative(
        "ElasticEmbedding-squared_distance",
        search(mf.ElasticEmbedding, repulsion="squared_distance", inverse="elastic", **ELASTIC),
        keeps_pairs=True,
        reproducibility=1e-6,  # weights of repulsion are in single precision
    ),
    iterative("UKR", search(mf.UKR), reproducibility=1e-7),
    iterative("UKR-box", search(mf.UKR, box=3.0, init="pca"), reproducibility=1e-4),
    iterative("MVU", search(mf.MVU), **UNFOLDING),
    iterative("MVU-at_most", search(mf.MVU, constraint="at_most"), **UNFOLDING),
    iterative("MVU-landmarks", search(mf.MVU, n_landmarks=8), reproducibility=1e-6, **UNFOLDING),
    iterative(
        "MVU-distances",
        search(mf.MVU, metric="precomputed"),
        takes="distances",
        **UNFOLDING,
    ),
]

# What long tables of cases run over in every test run: each way through the code once. The others
# take a short path through the table then, and the whole of it with `make test-slow`.
REPRESENTATIVES = {
    "ClassicalMDS": "linear, by a Gram matrix",
    "ClassicalMDS-precomputed": "given distances",
    "KernelPCA": "a kernel",
    "LaplacianEigenmaps": "a graph",
    "LaplacianEigenmaps-affinity": "given affinities",
    "LLE": "local weights",
    "LTSA": "tangent spaces",
    "Isomap-landmarks": "geodesics, landmarks",
    "NonRedundant-gradient": "a wrapper",
    "TSNE": "iterative, by neighbors",
    "UKR": "iterative, by regression",
    "MVU": "semidefinite",
}


def represents(method):
    return method.id in REPRESENTATIVES


@cache
def first_of_class():
    """The first configuration of every class."""
    return {type(method.make()): method.id for method in reversed(ESTIMATORS)}


def stands_for_its_class(method):
    return represents(method) or method.id == first_of_class()[type(method.make())]


def is_measured(method):
    """Whether the distance of new rows from the training rows is known."""
    metric = getattr(method.make(), "metric", "euclidean")
    return method.takes in ("data", "distances") and metric is not None


# The name under which a test asks for them says which it can use.
SELECTIONS: dict[str, Callable[[Configuration], bool]] = {
    "method": lambda c: True,
    "data_method": lambda c: c.takes == "data",
    "matrix_method": lambda c: c.takes != "data",
    "measured_method": is_measured,
    "unmeasured_method": lambda c: not is_measured(c),
    "spectral_method": lambda c: not c.iterative,
    "iterative_method": lambda c: c.iterative,
    # What the others say is tested where they refuse.
    "kernel_method": lambda c: c.has_kernel,
    "data_kernel_method": lambda c: c.has_kernel and c.takes == "data",
    "other_method": lambda c: not represents(c),
}
# A costly test is marked with those that it takes in every test run; the others are slow.
IN_EVERY_RUN = {
    "representatives": represents,
    "once_per_class": stands_for_its_class,
}


def pytest_configure(config):
    for name in IN_EVERY_RUN:
        config.addinivalue_line("markers", f"{name}: other configurations are slow")


def pytest_generate_tests(metafunc):
    if {"method", "case"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("method", "case"), list(table(metafunc.module.CASES)))
        return
    marked = [f for m, f in IN_EVERY_RUN.items() if metafunc.definition.get_closest_marker(m)]
    for name, usable in SELECTIONS.items():
        if name in metafunc.fixturenames:
            cells = [
                cell(c, id=c.id, slow=not all(f(c) for f in marked))
                for c in ESTIMATORS
                if usable(c)
            ]
            metafunc.parametrize(name, cells)


def cell(*values, id, slow):
    return pytest.param(*values, id=id, marks=pytest.mark.slow if slow else [])


def table(cases):
    """Each case with the methods that it applies to.

    In every test run are the representatives, and the first method for each other outcome that the
    case can have.
    """
    for case in cases:
        methods = [m for m in ESTIMATORS if case.applies(m)]
        seen = {case.outcome(m) for m in methods if represents(m)}
        for method in methods:
            known = case.outcome(method) in seen
            seen.add(case.outcome(method))
            slow = known and not represents(method)
            yield cell(method, case, id=f"{method.id}-{case.id}", slow=slow)


def cloud(n=60, seed=0):
    """Points in general position in a box of distinct sides: one component, no symmetry."""
    return np.random.default_rng(seed).uniform(size=(n, 5)) * [8.0, 4.0, 1.0, 0.7, 0.5]


@pytest.fixture(name="X")
def training_data():
    return cloud()


@pytest.fixture(name="X_new")
def new_data():
    return cloud(15, seed=1)


@pytest.fixture(scope="session")
def fitted():
    """Models of the training data, fitted once for all tests: read them, change nothing."""

    @cache
    def fit(method, dtype=np.float64):
        return method.make().fit(method.input(cloud()).astype(dtype))

    return fit


@pytest.fixture(scope="session")
def all_methods():
    """For tests that need them at once."""
    return ESTIMATORS


@pytest.fixture(scope="session")
def make_cloud():
    return cloud


def aligned(Y, reference):
    """`Y` with the sign of each column that fits `reference` best."""
    signs = np.sign((Y * reference).sum(axis=0))
    return Y * np.where(signs == 0, 1.0, signs)


@pytest.fixture(scope="session")
def same_up_to_sign():
    """Assert that two embeddings agree, relative to their size, up to the sign of columns."""

    def check(Y, reference, tolerance):
        Y, reference = np.asarray(Y, float), np.asarray(reference, float)
        assert Y.shape == reference.shape
        error = np.abs(aligned(Y, reference) - reference).max() / np.abs(reference).max()
        assert error <= tolerance, f"embeddings differ by {error:.1e} of their size"

    return check
