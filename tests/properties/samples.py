"""Data of many kinds: a recipe that hypothesis draws and prints, and the array it stands for."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


def normal(rng, n, d):
    return rng.standard_normal((n, d))


def heavy_tailed(rng, n, d):
    return rng.standard_cauchy((n, d))


def clusters(rng, n, d):
    return rng.integers(0, 3, (n, 1)) * 20.0 + rng.standard_normal((n, d))


def disconnected(rng, n, d):
    return np.repeat([0.0, 1e4], [n // 2, n - n // 2])[:, None] + rng.uniform(size=(n, d))


def duplicated_rows(rng, n, d):
    return rng.standard_normal((n, d))[rng.integers(0, n, n)]


def few_distinct_rows(rng, n, d):
    return rng.standard_normal((3, d))[rng.integers(0, 3, n)]


def one_distinct_row(rng, n, d):
    return np.tile(rng.standard_normal(d), (n, 1))


def one_row_apart(rng, n, d):
    X = one_distinct_row(rng, n, d)
    X[-1] += 1.0
    return X


def constant_columns(rng, n, d):
    X = rng.standard_normal((n, d))
    X[:, ::2] = 3.7
    return X


def low_rank(rng, n, d):
    return rng.standard_normal((n, 1)) * rng.standard_normal(d)


def integers(rng, n, d):
    return rng.integers(-3, 4, (n, d)).astype(float)


def binary(rng, n, d):
    return rng.integers(0, 2, (n, d)).astype(float)


def grid(rng, n, d):
    sides = (max(4, n),) if d == 1 else (6,) * d
    return np.stack(np.unravel_index(np.arange(n), sides, order="F"), axis=1).astype(float)


def line(rng, n, d):
    return np.linspace(0, 1, n)[:, None] * np.ones(d)


def curve(rng, n, d):
    t = np.sort(rng.uniform(0, 9, n))
    return np.stack([np.cos((j + 1) * t / 2) * t for j in range(d)], axis=1)


def roll(rng, n, d):
    t, width = rng.uniform(4, 14, n), rng.uniform(0, 10, (n, d))
    width[:, 0] = t * np.cos(t)
    width[:, -1] = t * np.sin(t)
    return width


def one_outlier(rng, n, d):
    X = rng.standard_normal((n, d))
    X[0] = 1e6
    return X


def mixed_scales(rng, n, d):
    return rng.standard_normal((n, d)) * np.logspace(-9, 9, d)


def zeros_and_tiny(rng, n, d):
    """Numbers whose squares underflow beside numbers whose squares do not."""
    return rng.choice([0.0, 1e-200, 1e-160, 1.0], (n, d))


def special_numbers(rng, n, d):
    """Both zeros, neighbors of one and of the ends of the range, and ordinary numbers."""
    ends = [0.0, -0.0, 5e-324, 1e-308, 1e-154, 1e154, 1 + 2**-52, 1 - 2**-53, 2.0**53]
    return rng.choice([*ends, -1.0, 1.0, 0.5, np.pi], (n, d))


KINDS = {
    make.__name__: make
    for make in (
        normal,
        heavy_tailed,
        clusters,
        disconnected,
        duplicated_rows,
        few_distinct_rows,
        one_distinct_row,
        one_row_apart,
        constant_columns,
        low_rank,
        integers,
        binary,
        grid,
        line,
        curve,
        roll,
        one_outlier,
        mixed_scales,
        zeros_and_tiny,
        special_numbers,
    )
}
GENERIC = ("normal", "curve", "roll")  # points in general position
# Most often 1: many estimators refuse data near the ends of the range.
SCALES = (*[1.0] * 9, 1e-9, 1e9, 1e-150, 1e150, 1e-300, 1e-315, 1e290)
OFFSETS = (0.0, 0.0, 0.0, 1.0, -1e8)


@dataclass(frozen=True)
class Sample:
    """A recipe for data."""

    kind: str
    n: int
    d: int
    seed: int
    scale: float = 1.0
    offset: float = 0.0
    dtype: str = "float64"

    @property
    def points(self):
        made = KINDS[self.kind](np.random.default_rng(self.seed), self.n, self.d)
        scale, largest = self.scale, 1e300
        if self.dtype == "float32":  # which ends at 3e38
            scale, largest = np.clip(scale, 1e-20, 1e20), 3.4e38
        with np.errstate(over="ignore"):
            scaled = (made + self.offset) * scale
        return np.clip(scaled, -largest, largest).astype(self.dtype)


@st.composite
def samples(draw, least=1, most=30, kinds=tuple(KINDS), scales=SCALES, offsets=OFFSETS):
    # Often enough for the default parameters, else any number.
    enough = st.integers(max(least, 16), most)
    counts = draw(st.sampled_from([enough, enough, st.integers(least, most)]))
    return Sample(
        draw(st.sampled_from(kinds)),
        draw(counts),
        draw(st.integers(1, 5)),
        draw(st.integers(0, 99)),
        draw(st.sampled_from(scales)),
        draw(st.sampled_from(offsets)),
        draw(st.sampled_from(["float64", "float64", "float32"])),
    )
