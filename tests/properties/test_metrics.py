"""Any data and any embedding: metrics are in their ranges, or refused with a clear error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manifoldry as mf
from manifoldry import metrics

from .outcomes import Refusal, attempt
from .samples import samples

INFINITE = np.inf
# Smallest and largest value of the metrics of data and embedding.
RANGES = {
    "trustworthiness": (0, 1),
    "continuity": (0, 1),
    "neighbor_preservation": (0, 1),
    "residual_variance": (0, 1),
    "strain": (0, INFINITE),
    "stress": (0, INFINITE),
}
ROUNDING = 1e-9


def embedding_of(n, seed, kind):
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: rng.standard_normal((n, 2)),
        "constant": lambda: np.ones((n, 2)),
        "tiny": lambda: 1e-200 * rng.standard_normal((n, 2)),
        "huge": lambda: 1e200 * rng.standard_normal((n, 2)),
        "few distinct": lambda: rng.integers(0, 2, (n, 2)).astype(float),
        "one coordinate": lambda: rng.standard_normal((n, 1)),
    }[kind]()


embedding_kinds = st.sampled_from(
    ["normal", "constant", "tiny", "huge", "few distinct", "one coordinate"]
)
seeds = st.integers(0, 99)


@pytest.mark.parametrize("name", RANGES)
@given(samples(), embedding_kinds, seeds)
def test_range(name, sample, kind, seed):
    X = sample.points
    Y = embedding_of(len(X), seed, kind)
    found = attempt(lambda: getattr(metrics, name)(X, Y))
    if not isinstance(found, Refusal):
        low, high = RANGES[name]
        assert low - ROUNDING <= float(found) <= high + ROUNDING


@given(samples(), embedding_kinds, seeds)
def test_assess(sample, kind, seed):
    X = sample.points
    Y = embedding_of(len(X), seed, kind)
    labels = np.random.default_rng(seed).integers(0, 3, len(X))
    found = attempt(lambda: mf.assess(X, Y, labels))
    if isinstance(found, Refusal):
        return
    assert str(found)
    for value in (found.metrics["trustworthiness"], found.metrics["continuity"]):
        assert -ROUNDING <= float(value) <= 1 + ROUNDING


@given(samples(least=2), embedding_kinds, embedding_kinds, seeds)
def test_procrustes(sample, kind, other, seed):
    n = sample.n
    first, second = embedding_of(n, seed, kind), embedding_of(n, seed + 1, other)
    found = attempt(lambda: metrics.procrustes(first, second))
    if not isinstance(found, Refusal):
        assert 0 <= found.error <= 1 + ROUNDING
