"""Invalid and unusual input: each estimator gives a right result or a clear error.

A case says what an estimator is given and what has to come of it: :class:`Right` with a check
of the result, or :class:`Refused` with the type of the error and what its message has to name.
NumPy's own RuntimeWarnings count as failures, as do errors of the numerical libraries underneath.
"""

import re
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

import manifoldry as mf
from manifoldry.exceptions import (
    DisconnectedGraphWarning,
    ManifoldryWarning,
    NoveltyWarning,
    RankWarning,
)
from manifoldry.optimize import EarlyExaggeration, Heat
from manifoldry.semidefinite import EdgeConstraint, MethodOfMultipliers

from .conftest import cloud

pytestmark = pytest.mark.filterwarnings("ignore:.* max_iter=25 steps")


@dataclass(frozen=True)
class Right:
    """The fit succeeds and `check(method, model, X)` finds the result right."""

    check: Callable[..., None]
    warns: type[Warning] | None = None


@dataclass(frozen=True)
class Refused:
    """An error of this type whose message matches."""

    error: type[Exception]
    match: str


@dataclass(frozen=True)
class Case:
    """Input of ``fit``, parameters and the expected outcome."""

    id: str
    given: Callable[[Any, np.ndarray], Any]
    expect: Callable[[Any], Right | Refused]
    params: Callable[[Any], dict[str, Any]] = lambda method: {}
    applies: Callable[[Any], bool] = lambda method: True

    def outcome(self, method):
        """Kind of outcome: equal for methods with the same expected outcome."""
        expected = self.expect(method)
        if isinstance(expected, Refused):
            return expected.error, expected.match
        return expected.check.__qualname__, expected.warns


def anyone(outcome):
    return lambda method: outcome


def takes_data(method):
    return method.takes == "data"


def takes_matrix(method):
    return method.takes != "data"


def perplexed(method):
    return method.has_perplexity


def has_own_units(method):
    """Whether a parameter is a length, so that the data cannot be rescaled."""
    return "radius" in method.id


# ---------------------------------------------------------------- checks of results


def finite(method, model, X):
    assert model.embedding_.shape[1] == model.n_components_
    assert np.isfinite(model.embedding_).all()
    if method.iterative:
        assert np.isfinite(model.trace_["value"]).all()
        assert np.isfinite(model.loss_)
    else:
        assert np.isfinite(model.eigenvalues_).all()


def zeros(method, model, X):
    finite(method, model, X)
    assert not model.embedding_.any()
    assert not model.transform(method.between(X[:2] * 0 + X[0], X)).any()


def as_plain(given, tolerance=1e-9):
    """Embedding and new points equal those of the data in the usual format."""

    def check(method, model, X):
        finite(method, model, X)
        plain = plainly_fitted(method, X, parameters(model, method))
        agree(model.embedding_, plain.embedding_, least(tolerance, method))
        new = X[:5] + 0.01
        placed = model.transform(given(method, method.between(new, X)))
        agree(placed, plain.transform(method.between(new, X)), 10 * least(tolerance, method))

    return check


def plainly_fitted(method, X, options):
    """A model of the data in the usual format; that with the method's own parameters is kept."""
    return method.make(**options).fit(method.input(X)) if options else kept_fit(method)


@cache
def kept_fit(method):
    return method.make().fit(method.input(cloud()))


def least(tolerance, method):
    """The tolerance of direct methods; iterative ones amplify rounding errors."""
    return max(tolerance, method.reproducibility) if method.iterative else tolerance


def parameters(model, method):
    names = method.make().get_params()
    return {k: v for k, v in model.get_params().items() if repr(v) != repr(names[k])}


def agree(Y, reference, tolerance):
    assert Y.shape == reference.shape
    signs = np.where((Y * reference).sum(axis=0) < 0, -1.0, 1.0)
    assert np.abs(Y * signs - reference).max() <= tolerance * np.abs(reference).max()


# ---------------------------------------------------------------- cases for all estimators


def whole(X):
    """The same data in whole numbers that fit a byte."""
    return np.round((X - X.min(axis=0)) * 30)


def replaced(value):
    def given(method, X):
        M = method.input(X).copy()
        M[3, 2] = M[2, 3] = value
        return M

    return given


def converted(convert):
    return lambda method, X: convert(method.input(X))


def masked(M):
    mask = np.zeros(M.shape, dtype=bool)
    mask[4, 1] = True
    return np.ma.array(M, mask=mask)


def unreadable(M):
    M = M.astype(object)
    M[1, 1] = "a word"
    return M


def too_many_components(method):
    bound = 5 if method.id == "PCA" or method.on_sheet else 59
    name = method.counted_by
    return Refused(ValueError, rf"{name}=60 must be at most .*={bound}; pass {name}={bound} or")


NOT_FINITE = Refused(ValueError, "(?i)contains (NaN|infinity)")


def not_a_count(error, value, rule):
    """The error for an invalid number of coordinates."""

    def outcome(m):
        message = f"{m.counted_by}={value!r} must be {rule}; pass {m.counted_by}=1 or more"
        return Refused(error, re.escape(message))

    return outcome


SAME = converted(lambda M: M)

GENERAL = [
    Case("plain", SAME, anyone(Right(finite))),
    Case("NaN", replaced(np.nan), anyone(NOT_FINITE)),
    Case("inf", replaced(np.inf), anyone(NOT_FINITE)),
    Case("-inf", replaced(-np.inf), anyone(NOT_FINITE)),
    Case("NaN in a frame", lambda m, X: pd.DataFrame(replaced(np.nan)(m, X)), anyone(NOT_FINITE)),
    Case("no rows", converted(lambda M: M[:0]), anyone(Refused(ValueError, r"0 sample\(s\)"))),
    Case("no columns", converted(lambda M: M[:, :0]), anyone(Refused(ValueError, "0 feature"))),
    Case(
        "one row",
        lambda m, X: m.input(X)[:1, : 1 if takes_matrix(m) else 5],
        anyone(Refused(ValueError, r"1 sample\(s\).*minimum of 2")),
    ),
    Case("1-D", converted(lambda M: M[:, 0]), anyone(Refused(ValueError, "Expected 2D array"))),
    Case("3-D", converted(lambda M: M[None]), anyone(Refused(ValueError, "a stack of"))),
    Case("a number", converted(lambda M: 3.0), anyone(Refused(ValueError, "2D array"))),
    Case("None", converted(lambda M: None), anyone(Refused(ValueError, "(?i)2D array|NoneType"))),
    Case("strings", converted(lambda M: M.astype(str)), anyone(Right(as_plain(lambda m, M: M)))),
    Case("words", converted(unreadable), anyone(Refused(ValueError, "could not convert.*a word"))),
    Case("objects", converted(lambda M: M.astype(object)), anyone(Right(as_plain(lambda m, M: M)))),
    Case("complex", converted(lambda M: M + 1j), anyone(Refused(ValueError, "Complex data not"))),
    Case("lists", converted(lambda M: M.tolist()), anyone(Right(as_plain(lambda m, M: M)))),
    Case(
        "masked cells",
        converted(masked),
        anyone(Refused(ValueError, r"X has 1 masked cells.*fill or drop them")),
    ),
    Case(
        "masked array without masked cells",
        converted(np.ma.array),
        anyone(Right(as_plain(lambda m, M: np.ma.array(M)))),
    ),
    Case(
        "Fortran order",
        converted(np.asfortranarray),
        anyone(Right(as_plain(lambda m, M: np.asfortranarray(M)))),
    ),
    Case(
        "strided",
        converted(lambda M: np.repeat(M, 2, axis=1)[:, ::2]),
        anyone(Right(as_plain(lambda m, M: np.repeat(M, 2, axis=1)[:, ::2]))),
    ),
    Case(
        "big-endian",
        converted(lambda M: M.astype(">f8")),
        anyone(Right(as_plain(lambda m, M: M.astype(">f8")))),
    ),
    Case("too many components", SAME, too_many_components, anyone({"n_components": 60})),
    *(
        Case(
            f"n_components={value!r}",
            SAME,
            not_a_count(error, value, what),
            anyone({"n_components": value}),
        )
        for value, error, what in [
            (0, ValueError, "at least 1"),
            (-1, ValueError, "at least 1"),
            (1.5, TypeError, "a whole number"),
            ("two", TypeError, "a whole number"),
            (True, TypeError, "a whole number"),
        ]
    ),
    Case(
        "unknown solver",
        SAME,
        anyone(Refused(ValueError, "eigen_solver='best' must be one of 'auto', 'dense'")),
        anyone({"eigen_solver": "best"}),
        lambda m: not m.iterative,
    ),
    Case(
        "bad seed",
        SAME,
        anyone(Refused(TypeError, "random_state='seven' must be a whole number")),
        anyone({"random_state": "seven"}),
    ),
]

# ---------------------------------------------------------------- whole numbers, sparse data


def as_type(dtype):
    def check(method, model, X):
        finite(method, model, X)
        plain = method.make().fit(whole(X).astype(dtype).astype(float))
        assert np.array_equal(model.embedding_, plain.embedding_)
        assert model.embedding_.dtype == np.float64

    return check


def dense_twin(method, model, X):
    """A sparse matrix gives what the same numbers in an array give."""
    finite(method, model, X)
    plain = method.make(**parameters(model, method)).fit(X)
    tolerance = least(1e-7, method)
    agree(model.embedding_, plain.embedding_, tolerance)
    new = X[:5] + 0.01
    agree(model.transform(sparse.csr_array(new)), plain.transform(new), 10 * tolerance)
    assert np.allclose(model.transform(sparse.csr_array(X)), model.embedding_, atol=1e-9)
    back = model.inverse_transform(model.embedding_[:3])
    assert isinstance(back, np.ndarray)
    expected = plain.inverse_transform(plain.embedding_[:3])
    assert np.allclose(back, expected, atol=100 * tolerance)


def mostly_zero(X):
    """Sparse data in general position: each row keeps three of its five features."""
    return np.where(np.argsort(np.argsort(X / X.max(axis=0), axis=1), axis=1) < 2, 0.0, X)


def explicit_zeros(X):
    X = sparse.csr_array(np.where(X == 0, -1.0, X))
    X.data[X.data == -1.0] = 0.0
    return X


def repeated_entries(X):
    """Every entry stored as two halves, which scipy takes as their sum."""
    half = sparse.coo_array(X / 2)
    twice = (np.tile(half.data, 2), (np.tile(half.row, 2), np.tile(half.col, 2)))
    return sparse.coo_array(twice, shape=X.shape)


def dense_twin_of_sparse(method, model, X):
    dense_twin(method, model, mostly_zero(X))


TYPES = [
    Case(
        np.dtype(dtype).name,
        lambda m, X, dtype=dtype: whole(X).astype(dtype),
        anyone(Right(as_type(dtype))),
        applies=lambda m: takes_data(m) and not has_own_units(m),
    )
    for dtype in (np.uint8, np.int16, np.int64, np.float16, bool)
]
TYPES[-1] = Case(
    "bool",
    # Twelve columns of zeros and ones, so that rows differ.
    lambda m, X: np.unpackbits(whole(X)[:, :2].astype(np.uint8), axis=1)[:, 2:].astype(bool),
    anyone(Right(finite)),
    applies=takes_data,
)
SPARSE = [
    Case(
        f"sparse {name}",
        lambda m, X, make=make: make(mostly_zero(X)),
        anyone(Right(dense_twin_of_sparse)),
        # Five neighbors among such data do not make a second smooth coordinate.
        lambda m: {"n_components": 1 if m.id == "SpectralEmbedding" else 2},
        takes_data,
    )
    for name, make in {
        "csr_array": sparse.csr_array,
        "csr_matrix": sparse.csr_matrix,
        "csc": sparse.csc_array,
        "coo": sparse.coo_array,
        "lil": sparse.lil_array,
        "with explicit zeros": explicit_zeros,
        "with repeated entries": repeated_entries,
    }.items()
]
SPARSE += [
    Case(
        "sparse NaN",
        lambda m, X: sparse.csr_array(replaced(np.nan)(m, X)),
        anyone(NOT_FINITE),
        applies=takes_data,
    ),
    Case(
        "sparse far from the origin",
        lambda m, X: sparse.csr_array(X + 1e5),
        lambda m: Right(finite if m.moves else unmoved(1e5, 1e-5)),
        applies=takes_data,
    ),
]

# ---------------------------------------------------------------- shapes of data

ONE_PLACE = Refused(
    ValueError, "each of the 60 rows coincides with all its neighbors.*drop duplicated rows"
)


def constant_outcome(method):
    if method.on_graph or method.iterative or method.id == "SpectralEmbedding-rbf":
        return ONE_PLACE
    return Right(zeros, RankWarning)


def scaled_by(factor):
    """Times sᵖ for the method's p, or refused where squares leave the range of double."""

    def check(method, model, X):
        finite(method, model, X)
        plain = method.make().fit(method.input(X))
        tolerance = least(1e-9, method)
        agree(model.embedding_ / factor**method.scale_power, plain.embedding_, tolerance)
        placed = model.transform(method.between(X[:5] + 0.01, X) * factor)
        expected = plain.transform(method.between(X[:5] + 0.01, X))
        agree(placed / factor**method.scale_power, expected, 10 * tolerance)
        if takes_data(method):
            back = model.inverse_transform(model.embedding_[:4]) / factor
            expected = plain.inverse_transform(plain.embedding_[:4])
            assert np.allclose(back, expected, atol=max(1e-6, 10 * tolerance))

    return check


SQUARES = ("Isomap", "DiffusionMaps-gaussian", "UKR", "TSNE-distances", "MVU")
OUT_OF_RANGE = Refused(ValueError, r"double precision.*(multiply X by a constant|rescale the data)")


def scale_outcome(factor):
    extreme = not 1e-160 < factor < 1e160

    def outcome(method):
        if method.id == "KernelPCA-poly":
            huge = Refused(ValueError, "Gram matrix has NaN or infinite entries; rescale the data")
            return huge if factor > 1 else Right(zeros, RankWarning)
        if method.id == "SpectralEmbedding-rbf":  # gamma is fixed: a weight for no pair, or for all
            if extreme:
                return Refused(ValueError, r"gamma=0\.2 is out of proportion.*rescale X")
            return NO_EDGES if factor > 1 else ONE_PLACE
        if method.id == "LaplacianEigenmaps-radius":
            return NO_EDGES if factor > 1 else Right(finite)
        if method.takes in ("kernel", "affinity"):  # these are squares already
            return OUT_OF_RANGE
        if extreme and method.id.startswith(SQUARES):
            return OUT_OF_RANGE
        if method.iterative:
            return Right(scaled_by(factor))
        squares = method.linear or method.takes == "distances" or "Kernel" in method.id
        if extreme and (squares or "MDS" in method.id) and not method.on_graph:
            return OUT_OF_RANGE
        return Right(scaled_by(factor))

    return outcome


NO_EDGES = Refused(
    ValueError, "no two of the 60 points are connected by a positive weight; raise radius"
)


def unmoved(offset, tolerance=1e-7):
    """The data far from the origin give what the same rounded data give at the origin."""

    def check(method, model, X):
        finite(method, model, X)
        rounded = (X + offset) - offset
        plain = method.make().fit(rounded)
        agree(model.embedding_, plain.embedding_, least(tolerance, method))
        new = X[:5] + 0.25
        placed = model.transform(new + offset)
        expected = plain.transform((new + offset) - offset)
        agree(placed, expected, 10 * least(tolerance, method))

    return check


def two_blobs(X):
    """The first 40 rows near the origin, the other 20 far away."""
    X = X.copy()
    X[40:] += 200.0
    return X


def blobs_apart(method, model, X):
    finite(method, model, X)
    Y = model.embedding_
    if method.iterative:
        assert (on_map_neighbors(Y) < 40)[:40].all()
        assert (on_map_neighbors(Y) >= 40)[40:].all()
    if not method.on_graph:
        return
    if method.id == "SpectralEmbedding":  # the graph as a whole, as in scikit-learn
        assert max(np.ptp(Y[:40, 0]), np.ptp(Y[40:, 0])) < 1e-6 * np.ptp(Y[:, 0])
        return
    joined = method.id.startswith(
        "Isomap"
    )  # geodesic methods join the components, others embed them separately
    labels = np.zeros(60) if joined else np.repeat([0, 1], [40, 20])
    assert np.array_equal(model.component_labels_, labels)
    true = np.linalg.norm(two_blobs(X)[:40].mean(axis=0) - two_blobs(X)[40:].mean(axis=0))
    apart = np.linalg.norm(Y[:40].mean(axis=0) - Y[40:].mean(axis=0))
    assert np.isclose(apart, true, rtol=0.05 if joined else 1e-6)


def on_map_neighbors(Y):
    """The nearest neighbor of every point."""
    D = cdist(Y, Y)
    np.fill_diagonal(D, np.inf)
    return D.argmin(axis=1)


def halves_duplicated(X):
    return np.vstack([X[:30], X[:30]])


def duplicates_together(method, model, X):
    """Identical rows coincide, or for graphs are much closer than other rows."""
    finite(method, model, X)
    Y = model.embedding_
    apart = np.linalg.norm(Y[:30] - Y[30:], axis=1).mean()
    spread = np.linalg.norm(Y - Y.mean(axis=0), axis=1).mean()
    assert apart <= (0.5 if method.on_graph or method.iterative else 1e-6) * spread


def identical_rows_together(method, model, X):
    """Thirty identical rows lie close together."""
    finite(method, model, X)
    Y = model.embedding_
    # In UKR with a density floor, duplicates predict each other wherever they are.
    fraction = 0.6 if method.id == "UKR" else 0.5
    fraction = fraction if method.iterative else 0.3 if method.on_graph else 1e-6
    assert rms_radius(Y[30:]) <= fraction * rms_radius(Y)


def one_outlier(X):
    X = X.copy()
    X[7] = 1e6
    return X


def others_not_crushed(method, model, X):
    """All finite; an outlier may be a component by itself, and the others keep their size."""
    finite(method, model, X)
    keeps_size = method.scale_power != 1  # else the embedding has the size of the data
    if method.on_graph and model.component_labels_.max() > 0 and keeps_size:
        assert np.flatnonzero(model.component_labels_).tolist() == [7]
        others = np.arange(60) != 7
        size = [rms_radius(A[others]) for A in (model.embedding_, X)]
        assert np.isclose(*size, rtol=1e-6)


def rms_radius(A):
    return np.sqrt(np.square(A - A.mean(axis=0)).sum(axis=1).mean())


def few(params):
    """Parameters for a few rows, with the default perplexity."""
    return lambda m: {**params, **({"perplexity": None} if m.has_perplexity else {})}


SHAPES = [
    Case("constant data", lambda m, X: X * 0 + 1.7, constant_outcome, applies=takes_data),
    Case("all zeros", lambda m, X: X * 0, constant_outcome, applies=takes_data),
    Case(
        "two rows",
        lambda m, X: m.input(X[:2]),
        lambda m: (
            Refused(ValueError, "no two of the 2 points")
            if has_own_units(m)
            else Refused(ValueError, "n_samples=2 must be at least [34] for")
            if m.on_sheet
            else Right(finite)
        ),
        few({"n_components": 1}),
        lambda m: "landmarks" not in m.id,  # fewer rows than landmarks are an error
    ),
    Case(
        "three rows",
        lambda m, X: m.input(X[:3]),
        lambda m: (
            Refused(ValueError, "must be at least 4 for|n_components=2 must be at most .*=1")
            if m.on_sheet
            else Right(finite)
        ),
        few({"n_components": 2}),
        lambda m: "landmarks" not in m.id,  # fewer rows than landmarks are an error
    ),
    Case(
        "two rows for two components",
        lambda m, X: m.input(X[:2]),
        lambda m: Refused(
            ValueError, rf"{m.counted_by}=2 must be at most .*=1; pass {m.counted_by}=1 or fewer"
        ),
        anyone({"n_components": 2}),
        lambda m: not m.on_sheet,
    ),
    Case("ten rows", lambda m, X: m.input(X[:10]), anyone(Right(finite)), few({})),
    Case(
        "one feature",
        lambda m, X: X[:, :1],
        lambda m: Right(finite, RankWarning if m.linear and m.id != "PCA" else None),
        applies=takes_data,
    ),
    Case(
        "one feature for two components",
        lambda m, X: X[:, :1],
        anyone(
            Refused(ValueError, r"must be at most min\(n_samples - 1, n_features\)=1; pass n_c")
        ),
        anyone({"n_components": 2}),
        lambda m: m.id == "PCA",
    ),
    Case(
        "every row twice",
        lambda m, X: m.input(halves_duplicated(X)),
        anyone(Right(duplicates_together)),
    ),
    Case(
        "half of the rows identical",
        lambda m, X: m.input(np.vstack([X[:30], np.repeat(X[:1], 30, axis=0)])),
        lambda m: (
            Refused(ValueError, "row 0 occurs 31 times.*drop duplicated rows")
            if m.on_sheet
            else Right(identical_rows_together)
        ),
        lambda m: converging(m),
    ),
    Case(
        "two blobs",
        lambda m, X: m.input(two_blobs(X)),
        lambda m: Right(
            blobs_apart, DisconnectedGraphWarning if m.on_graph or m.has_perplexity else None
        ),
        lambda m: converging(m),
        # Weights of exactly zero between the blobs, and nothing known about where they lie; for a
        # clustering the blobs are not components but its answer.
        applies=lambda m: m.takes != "affinity" and m.id != "SpectralClustering",
    ),
    Case(
        "one far outlier",
        lambda m, X: m.input(one_outlier(X)),
        anyone(Right(others_not_crushed)),
    ),
    *(
        Case(
            f"times {factor:.0e}",
            lambda m, X, factor=factor: m.input(X) * factor,
            scale_outcome(factor),
        )
        for factor in (1e150, 1e-150, 1e200, 1e-200)
    ),
    *(
        Case(
            f"offset {offset:.0e}",
            lambda m, X, offset=offset: X + offset,
            lambda m, offset=offset: Right(finite if m.moves else unmoved(offset)),
            applies=takes_data,
        )
        for offset in (1e4, 1e8)
    ),
]

# ---------------------------------------------------------------- neighbors


def too_many_neighbors(method):
    if "SpectralEmbedding" in method.id:
        return Refused(
            ValueError, "n_neighbors=61 must be at most n_samples=60; pass n_neighbors=60"
        )
    return Refused(ValueError, "n_neighbors=60 must be less than n_samples=60; pass n_neighbors=59")


def takes_neighbors(method):
    return method.on_graph and "radius" not in method.id


def bad_count(value, error, what):
    def outcome(method):
        low = 2 if "SpectralEmbedding" in method.id else 1
        low_text = f"at least {low}" if what == "low" else "a whole number"
        return Refused(error, rf"n_neighbors={value!r} must be {low_text}; pass n_neighbors={low}")

    return outcome


NEIGHBORS = [
    Case(
        "too many neighbors",
        SAME,
        too_many_neighbors,
        lambda m: {"n_neighbors": 61 if "SpectralEmbedding" in m.id else 60},
        takes_neighbors,
    ),
    *(
        Case(
            f"n_neighbors={value!r}",
            SAME,
            bad_count(value, error, what),
            anyone({"n_neighbors": value}),
            takes_neighbors,
        )
        for value, error, what in [
            (0, ValueError, "low"),
            (-3, ValueError, "low"),
            (2.5, TypeError, "type"),
            ("ten", TypeError, "type"),
        ]
    ),
    *(
        Case(
            f"radius={value}",
            SAME,
            anyone(Refused(error, match)),
            anyone({"radius": value}),
            lambda m: "radius" in m.id,
        )
        for value, error, match in [
            (0.0, ValueError, "radius=0.0 must be greater than 0"),
            (np.nan, ValueError, "radius=nan must be finite"),
            ("far", TypeError, "radius='far' must be a number"),
            (1e-9, ValueError, "no two of the 60 points are connected"),
        ]
    ),
    Case(
        "neighbors and a radius",
        SAME,
        anyone(Refused(ValueError, r"pass n_neighbors=5 or radius=2.5, not both")),
        anyone({"n_neighbors": 5}),
        lambda m: "radius" in m.id,
    ),
    *(
        Case(
            f"{name}={value!r}",
            SAME,
            anyone(Refused(ValueError, match)),
            anyone({name: value}),
            lambda m: m.id == "LaplacianEigenmaps",
        )
        for name, value, match in [
            ("disconnected", "ignore", "disconnected='ignore' must be one of 'separate', 'join'"),
            ("affinity", "cauchy", "affinity='cauchy' must be one of 'gaussian', 'binary'"),
            ("normalization", "max", "normalization='max' must be one of 'rw', 'sym', 'none'"),
            ("gamma", -1.0, r"gamma=-1.0 must be greater than 0"),
            ("metric", "euclid", "euclid"),
        ]
    ),
    *(
        Case(
            f"{name}={value!r}",
            SAME,
            anyone(Refused(error, match)),
            anyone({name: value}),
            lambda m: m.id == "KernelPCA",
        )
        for name, value, error, match in [
            ("kernel", "gauss", ValueError, "kernel='gauss' must be one of 'linear', 'rbf'"),
            ("gamma", 0.0, ValueError, "gamma=0.0 must be greater than 0"),
            ("alpha", -2, ValueError, "alpha=-2 must be greater than 0"),
            ("alpha", "small", TypeError, "alpha='small' must be a number"),
            ("inverse", "exact", TypeError, "inverse='exact' must be None, 'ridge'"),
        ]
    ),
    Case(
        "gamma without a kernel",
        SAME,
        anyone(Refused(ValueError, "gamma=1.0 is not used by affinity='binary'")),
        anyone({"gamma": 1.0}),
        lambda m: m.id == "LaplacianEigenmaps-binary",
    ),
    Case(
        "fixed point of another kernel",
        SAME,
        anyone(Refused(ValueError, "inverse='fixed_point' needs kernel='rbf', not 'poly'")),
        anyone({"inverse": "fixed_point"}),
        lambda m: m.id == "KernelPCA-poly",
    ),
    Case(
        "unknown metric",
        SAME,
        anyone(Refused(ValueError, "(?i)metric.*manhatten")),
        anyone({"metric": "manhatten"}),
        lambda m: m.id == "ClassicalMDS",
    ),
]

# ---------------------------------------------------------------- precomputed matrices


def asymmetric(M):
    M = M.copy()
    M[2, 3] += M.max()
    return M


def with_diagonal(M):
    return M + np.diag(np.linspace(1, 2, len(M)))


def zero_row(M):
    M = M.copy()
    M[5] = M[:, 5] = 0.0
    return M


def negative_outcome(method):
    if method.takes == "kernel":
        return Right(finite)  # a kernel of opposite vectors
    what = "distances" if method.takes == "distances" else "affinities"
    return Refused(ValueError, rf"precomputed {what} must not be negative; the smallest is -\d")


def diagonal_outcome(method):
    if method.takes == "distances":
        return Refused(ValueError, r"must have a zero diagonal; the largest entry there is 2\.0")
    return Right(finite)


def ignores_the_diagonal(method, model, X):
    plain = method.make().fit(method.input(X))
    agree(model.embedding_, plain.embedding_, 1e-9)


def sparse_matrix_outcome(method):
    if "MDS" in method.id:
        return Refused(ValueError, "distances must be dense, not sparse.*pass X.toarray()")
    return Right(as_plain(lambda m, M: sparse.csr_array(M)))


def with_all_pairs(method):
    """Parameters for which a sparse matrix that holds all pairs says as much as a dense one."""
    if method.unfolds:
        start = MethodOfMultipliers(init="spectral")
        constraint = EdgeConstraint(cliques=False)
        return {"constraint": constraint, "n_neighbors": 8, "optimizer": start}
    return {"perplexity": 20, "init": "spectral"} if method.iterative else {}


def alone(method, model, X):
    finite(method, model, X)
    if "SpectralEmbedding" in method.id:  # the graph as a whole, as in scikit-learn
        others = np.delete(model.embedding_[:, 0], 5)
        assert np.ptp(others) < 1e-6 * abs(model.embedding_[5, 0] - others[0])
        return
    assert (model.component_labels_ == np.where(np.arange(60) == 5, 1, 0)).all()


MATRICES = [
    Case("negative entries", replaced(-0.5), negative_outcome, applies=takes_matrix),
    Case(
        "asymmetric",
        converted(asymmetric),
        anyone(Refused(ValueError, r"must be symmetric; entries differ.*pass \(A \+ A.T\) / 2")),
        applies=takes_matrix,
    ),
    Case(
        "not square",
        converted(lambda M: M[:, :-2]),
        anyone(Refused(ValueError, r"must be a square matrix; got shape \(60, 58\)")),
        applies=takes_matrix,
    ),
    Case("diagonal", converted(with_diagonal), diagonal_outcome, applies=takes_matrix),
    Case(
        "diagonal of affinities",
        converted(with_diagonal),
        anyone(Right(ignores_the_diagonal)),
        # To diffusion maps it gives the probabilities to stay.
        applies=lambda m: m.takes == "affinity" and "DiffusionMaps" not in m.id,
    ),
    Case(
        "sparse matrix",
        converted(sparse.csr_array),
        sparse_matrix_outcome,
        # All pairs are in the graph then, too.
        lambda m: with_all_pairs(m),
        takes_matrix,
    ),
    Case(
        "point without affinities",
        converted(zero_row),
        anyone(Right(alone, DisconnectedGraphWarning)),
        applies=lambda m: m.takes == "affinity",
    ),
    Case(
        "no affinities at all",
        converted(np.zeros_like),
        anyone(Refused(ValueError, "no two of the 60 points are connected by a positive weight")),
        applies=lambda m: m.takes == "affinity",
    ),
    Case(
        "no distances at all",
        converted(np.zeros_like),
        lambda m: ONE_PLACE if m.on_graph or m.iterative else Right(finite, RankWarning),
        applies=lambda m: m.takes == "distances",
    ),
    Case(
        "no kernel at all",
        converted(np.zeros_like),
        anyone(Right(finite, RankWarning)),
        applies=lambda m: m.takes == "kernel",
    ),
]

# ---------------------------------------------------------------- iterative methods


def searches(method):
    return method.iterative


def steered(method):
    """Whether the method has the parameter `optimizer`."""
    return method.iterative and not method.unfolds


def unfolds(method):
    return method.unfolds


def called(*ids):
    return lambda method: method.id in ids


ELASTIC, STUDENT = called("ElasticEmbedding"), called("TSNE", "TSNE-distances")
COUNT, NUMBER = "must be a whole number", "must be a number"
AT_MOST = r"must be at most 59 \(n_samples=60 minus one\); lower perplexity"
NO_START = "must be one of .*'spectral', 'pca', 'random', an array of shape .* or an estimator"
NO_NUMBERS = "is not an array of numbers; pass one of 'spectral'"

REFUSED = [
    (steered, "optimizer", 3, ValueError, "optimizer=3 must be one of 'gradient', .*a Homotopy"),
    (steered, "optimizer", "best", ValueError, "optimizer='best' must be one of 'gradient', 'cg'"),
    (steered, "optimizer", Heat(), ValueError, r"optimizer=Heat\(.* such as 'spectral-lbfgs'"),
    (steered, "optimizer", MethodOfMultipliers(), ValueError, "an Optimizer or, for an estimator"),
    (unfolds, "optimizer", "lbfgs", TypeError, "optimizer='lbfgs' must be a MethodOfMultipliers"),
    (searches, "callback", "print", TypeError, "callback='print' must be callable, a .*Callback"),
    (searches, "max_iter", 0, ValueError, "max_iter=0 must be at least 1"),
    (searches, "max_iter", 2.5, TypeError, f"max_iter=2.5 {COUNT}"),
    (steered, "init", "best", ValueError, f"init='best' {NO_START}"),
    (steered, "init", np.zeros((60, 3)), ValueError, r"init has shape \(60, 3\); .*\(60, 2\)"),
    (steered, "init", np.zeros(60), ValueError, r"init has shape \(60,\); .*\(60, 2\)"),
    (steered, "init", np.full((60, 2), np.nan), ValueError, "init has NaN or infinite entries"),
    (steered, "init", np.ones((60, 2)), ValueError, "init has all points in one place"),
    (steered, "init", [["a", "b"]], TypeError, NO_NUMBERS),
    (steered, "init", mf.PCA, TypeError, NO_NUMBERS),
    (steered, "init", KNeighborsClassifier(), ValueError, NO_START),
    (unfolds, "optimizer", MethodOfMultipliers(init="best"), ValueError, "init='best' must be one"),
    (unfolds, "optimizer", MethodOfMultipliers(init=np.zeros(60)), ValueError, "init has shape"),
    (perplexed, "perplexity", 60, ValueError, f"perplexity=60 {AT_MOST}"),
    (perplexed, "perplexity", 0.5, ValueError, "perplexity=0.5 must be at least 1"),
    (perplexed, "perplexity", -3, ValueError, "perplexity=-3 must be greater than 0"),
    (perplexed, "perplexity", np.nan, ValueError, "perplexity=nan must be finite"),
    (perplexed, "perplexity", "ten", TypeError, f"perplexity='ten' {NUMBER}"),
    (STUDENT, "degrees_of_freedom", 0, ValueError, "degrees_of_freedom=0 must be greater than 0"),
    (STUDENT, "early_exaggeration", -1, ValueError, "early_exaggeration=-1 must be greater than"),
    (STUDENT, "early_exaggeration", "much", TypeError, f"early_exaggeration='much' {NUMBER}"),
    (ELASTIC, "weight", 0.0, ValueError, "weight=0.0 must be greater than 0"),
    (ELASTIC, "weight", -1.0, ValueError, "weight=-1.0 must be greater than 0"),
    (ELASTIC, "weight", np.inf, ValueError, "weight=inf must be finite"),
    (ELASTIC, "weight", None, TypeError, f"weight=None {NUMBER}"),
    (ELASTIC, "weight", "strong", ValueError, "weight='strong' must be one of 'auto'"),
    (ELASTIC, "repulsion", "strong", ValueError, "repulsion='strong' must be one of '"),
    (ELASTIC, "repulsion", np.ones((3, 3)), ValueError, "has 3 points and the attraction 60"),
    (ELASTIC, "repulsion", -np.ones((60, 60)), ValueError, "must not be negative"),
    (ELASTIC, "repulsion", np.zeros((60, 60)), ValueError, "repulsive weights sum to 0.0"),
    (ELASTIC, "repulsion", np.full((60, 60), np.nan), ValueError, "repulsive weights sum to nan"),
    (ELASTIC, "repulsion", None, ValueError, "finite weights.*or repulsion='uniform'"),
    (called("UKR"), "kernel", "gauss", ValueError, "kernel='gauss'"),
    (called("UKR"), "box", 0.0, ValueError, "box=0.0 must be greater than 0"),
    (called("UKR"), "box", "wide", TypeError, f"box='wide' {NUMBER}"),
    (called("UKR"), "density_floor", -1, ValueError, "density_floor=-1 must be at least 0"),
    (called("UKR"), "leave_one_out", False, ValueError, "pass box=3, for example, or leave_one"),
    (called("UKR"), "n_neighbors", 60, ValueError, "n_neighbors=60 must be less than n_samples"),
    (called("UKR"), "n_neighbors", 2.5, TypeError, f"n_neighbors=2.5 {COUNT}"),
    (unfolds, "constraint", "exact", ValueError, "constraint='exact' must be one of 'equal'"),
    (unfolds, "constraint", 0.01, ValueError, "constraint=0.01 must be .*EdgeConstraint"),
    (unfolds, "disconnected", "ignore", ValueError, "disconnected='ignore' must be one of"),
    (unfolds, "metric", "euclid", ValueError, "(?i)metric.*euclid"),
    (called("MVU"), "n_landmarks", 61, ValueError, "n_landmarks=61 must be at most 60 "),
    (called("MVU"), "n_landmarks", 2, ValueError, "n_landmarks=2 must be at least 3"),
    (called("MVU"), "n_landmarks", 2.5, TypeError, f"n_landmarks=2.5 {COUNT}"),
    (called("MVU-distances"), "n_landmarks", 9, ValueError, "needs the coordinates of the data"),
]


def converging(method):
    """Parameters of a search that ends where it would."""
    return (
        {"max_iter": 200, "early_exaggeration": EarlyExaggeration(n_iter=50)}
        if "TSNE" in method.id
        else {}
    )


def collapsed(method, model, X):
    finite(method, model, X)
    assert np.abs(model.embedding_).max() < 1e-3
    assert np.isfinite(model.transform(method.between(X[:3] + 0.01, X))).all()


FAR = 1e6 + 1e3 * np.random.default_rng(0).standard_normal((60, 2))
SEARCHES = [
    *(
        Case(
            f"{name}={str(value)[:20]}",
            SAME,
            anyone(Refused(error, match)),
            anyone({name: value}),
            applies,
        )
        for applies, name, value, error, match in REFUSED
    ),
    Case(
        "repulsion too weak",
        SAME,
        anyone(Right(collapsed, RankWarning)),
        anyone({"weight": 1e-3, "max_iter": 100}),
        ELASTIC,
    ),
    Case(
        "repulsion so strong that points part",
        SAME,
        anyone(Right(finite)),
        anyone({"weight": 1e12}),
        ELASTIC,
    ),
    Case(
        "everybody a neighbor",
        SAME,
        anyone(Right(finite)),
        anyone({"perplexity": 59}),
        perplexed,
    ),
    Case(
        "more components than features",
        SAME,
        anyone(Right(finite)),
        anyone({"n_components": 7}),
        searches,
    ),
    Case(
        "a far start",
        SAME,
        anyone(Right(finite)),
        lambda m: {"optimizer": MethodOfMultipliers(init=FAR)} if m.unfolds else {"init": FAR},
        searches,
    ),
]

CASES = [*GENERAL, *TYPES, *SPARSE, *SHAPES, *NEIGHBORS, *MATRICES, *SEARCHES]


def check(method, case, X):
    model = method.make(**case.params(method))
    given, outcome = case.given(method, X), case.expect(method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ManifoldryWarning)
        if isinstance(outcome, Refused):
            with pytest.raises(outcome.error, match=outcome.match) as raised:
                model.fit(given)
            assert type(raised.value).__name__ not in ("LinAlgError", "ArpackError")
            return
        model.fit(given)
        outcome.check(method, model, X)
    kinds = {warning.category for warning in caught}
    assert outcome.warns is None or outcome.warns in kinds


def test_fit(method, case, X):
    check(method, case, X)


# Data with special code paths; refused input takes almost no time.
SHORT_TABLE = ("sparse csr_array", "ten rows", "one far outlier", "offset 1e+08", "times 1e-150")


def test_fit_in_short(other_method, X):
    """All refused and some unusual input, for estimators that do not run the whole table."""
    for case in CASES:
        refused = isinstance(case.expect(other_method), Refused)
        if case.applies(other_method) and (refused or case.id in SHORT_TABLE):
            with naming(case.id):
                check(other_method, case, X)


@contextmanager
def naming(case):
    """Add the name of the case to errors."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case: {case}")
        raise


# ---------------------------------------------------------------- transform and inverse_transform


def test_unfitted(method, X):
    for call in (
        lambda m: m.transform(method.input(X)),
        lambda m: m.inverse_transform(X[:, :2]),
        lambda m: m.extension_error(method.input(X)),
        lambda m: m.get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(method.make())


BAD_ROWS = {
    "NaN": (lambda M: np.full_like(M, np.nan), "contains NaN"),
    "infinite": (lambda M: np.full_like(M, np.inf), "contains infinity"),
    "one column less": (lambda M: M[:, 1:], r"expecting \d+ features"),
    "one column more": (lambda M: np.hstack([M, M[:, :1]]), r"expecting \d+ features"),
    "no rows": (lambda M: M[:0], r"0 sample\(s\)"),
    "1-D": (lambda M: M[0], "Expected 2D array"),
    "complex": (lambda M: M + 1j, "Complex data not supported"),
    "masked": (masked, "1 masked cells"),
}


def test_transform(method, fitted, X, X_new):
    for kind, (spoil, message) in BAD_ROWS.items():
        with naming(kind), pytest.raises(ValueError, match=message):
            fitted(method).transform(spoil(method.between(X_new, X)))


def test_far_away_points_stay_finite(data_method, fitted, X):
    """A new point far from all training points gets finite coordinates or an error."""
    model = fitted(data_method)
    far = np.vstack([X[0] + np.array([1e6, 0, 0, 0, 0]), X[0] - 1e3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NoveltyWarning)
        # The elastic embedding moves them outside, up to a limit.
        warnings.filterwarnings("ignore", ".*their distance from the embedding is limited")
        if "radius" in data_method.id:
            with pytest.raises(ValueError, match="no training point within the radius"):
                model.transform(far)
            return
        assert np.isfinite(model.transform(far)).all()


def test_matrices_of_new_points_are_checked(matrix_method, fitted, X, X_new):
    model = fitted(matrix_method)
    rows = matrix_method.between(X_new, X)
    rows[2, 3] = -1.0
    if matrix_method.takes == "kernel":
        assert np.isfinite(model.transform(rows)).all()
        return
    with pytest.raises(ValueError, match=r"must not be negative; the smallest is -1\.0"):
        model.transform(rows)
