"""Newton's method for many small problems at once, each with its own steps and its own end."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from manifoldry.extension.placement import Local
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True)
class TrustRegion:
    """How far a quadratic model is trusted, by the share of its promise that a step has kept."""

    accept: float = 1e-4  # share of the promised decrease that a step has to bring
    poor: float = 0.25  # share below which the model is trusted less
    good: float = 0.75  # share above which it is trusted more
    longest: float = 4.0  # radius, in units of the scale

    def next_radius(self, radius: Array, length: Array, kept: Array) -> Array:
        """Of the next step, after one of that length that has `kept` a share of its promise."""
        grown = np.where(length >= radius, 2 * radius, radius)
        # Where the trial has no value at all, neither comparison holds: that is a failure too.
        return np.where(kept > self.good, grown, np.where(kept > self.poor, radius, length / 4))


DEFAULT_REGION = TrustRegion()


class Problems(Protocol):
    """Functions of a few variables each."""

    def at(self, Z: Array, rows: IntArray) -> Local:
        """The functions `rows` and their derivatives at the places `Z`."""
        ...


class Minima(NamedTuple):
    """Where the searches ended."""

    places: Array  # (n, d)
    values: Array  # (n,)
    gradients: Array  # (n, d)
    converged: NDArray[np.bool_]
    n_iter: IntArray


def minimize_each(
    problems: Problems,
    Z: Array,
    rows: IntArray,
    scale: Array,
    tolerance: float = 1e-9,
    max_iter: int = 200,
    region: TrustRegion = DEFAULT_REGION,
) -> Minima:
    """Minimize the functions `rows` from the starts `Z`, (n, d), by safeguarded Newton steps.

    Curvatures count by their modulus, so that a step descends everywhere and leaves saddles. Along
    each axis of curvature a step is no longer than a radius, which grows and shrinks with the
    success of the quadratic model; that is the exact minimizer of the model in the box. A search
    ends when its step is below `tolerance`. Radius and tolerance are in units of `scale`, (n,).
    """
    Z, radius = np.array(Z, dtype=np.float64), np.array(scale, dtype=np.float64)
    here = problems.at(Z, rows)
    converged, n_iter = np.zeros(len(Z), dtype=bool), np.zeros(len(Z), dtype=np.intp)
    active = np.arange(len(Z))
    while len(active):
        now = here.take(active)
        step = _step(now, radius[active], tolerance * scale[active])
        there = problems.at(Z[active] + step.move, rows[active])
        noise = now.value_noise + there.value_noise
        with np.errstate(invalid="ignore"):  # flat without rounding: 0/0 is no success
            success = (now.value - there.value + noise) / (step.decrease + noise)
        better = success > region.accept
        Z[active[better]] += step.move[better]
        here.put(active[better], there.take(better))
        wider = region.next_radius(radius[active], step.length, success)
        radius[active] = np.minimum(wider, region.longest * scale[active])
        n_iter[active] += 1
        converged[active] = step.last
        stuck = radius[active] <= tolerance * scale[active]
        active = active[~(step.last | stuck) & (n_iter[active] < max_iter)]
    return Minima(Z, here.value, here.gradient, converged, n_iter)


class _Step(NamedTuple):
    """Where to go next."""

    move: Array  # (n, d)
    length: Array  # along the longest axis of curvature
    decrease: Array  # what the model promises
    last: NDArray[np.bool_]


def _step(now: Local, radius: Array, tolerance: Array, flat: float = 1e-300) -> _Step:
    """The minimizer of the quadratic model in the box; a curvature of `flat` stands for none."""
    curvature, axes = np.linalg.eigh(now.hessian)
    curvature = np.maximum(np.abs(curvature), flat)
    slope = np.einsum("nij,ni->nj", axes, now.gradient)
    slope[np.abs(slope) <= now.gradient_noise[:, None]] = 0.0
    with np.errstate(over="ignore"):  # on flat ground the radius is the limit
        whole = -slope / curvature
    along = np.clip(whole, -radius[:, None], radius[:, None])
    decrease = -(slope * along + 0.5 * curvature * along**2).sum(axis=1)
    last = np.abs(whole).max(axis=1) <= tolerance
    move = np.einsum("nij,nj->ni", axes, along)
    return _Step(move, np.abs(along).max(axis=1), decrease, last)
