"""When a search has done enough."""

import time
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifoldry.optimize.optimizer import Point
from manifoldry.util.arrays import extent, norm, precision
from manifoldry.util.checks import check_count, check_nonnegative, check_positive


class Status(NamedTuple):
    """Why a search stops, and whether that makes its map a minimizer."""

    converged: bool
    message: str


@dataclass(frozen=True)
class Stopping:
    """Stop when the map, its value or the gradient says so, or when time is up.

    Parameters
    ----------
    max_iter : int, default=1000
        Most steps to take.
    tol : float, default=1e-5
        Converged after `n_small_steps` steps in a row that each moved the map by at most this
        fraction of its size about its mean, ‖ΔY‖ ≤ tol·‖Y − Ȳ‖; 0 to ignore.
    max_reference_size : float, default=None
        Points' root mean square distance from the mean beyond which a map counts as no larger: a
        step that is short for a long map may still be far for the kernel of its objective.
    value_tol : float, default=1e-7
        Converged when the values of the last `window` steps differ by at most this fraction, or by
        the precision of the map, and the gradient has not grown over them. Close to a saddle,
        where every small map starts, values hardly differ either, but gradients grow. 0 to ignore.
    gradient_tol : float, default=1e-6
        Converged when the gradient is at most this fraction of the largest one met, or the
        precision of the map, if that is more, and so is its product with the map's size: gradients
        also shrink where a map has grown.
    window : int, default=10
        Steps over which values are compared.
    max_time : float, default=None
        Most seconds to take; looked at after every step.
    n_small_steps : int, default=3
        Short steps in a row that count: a single one may be a bad direction.
    divergence_factor : float, default=1e3
        Factor by which the gradient, times the map's size, may exceed `gradient_tol` where the
        gradient itself does not: beyond it gradients vanish because the map has grown.
    rounding_factor : float, default=64
        Parts of a value may be this much larger than the value itself, and round accordingly.

    Examples
    --------
    >>> from manifoldry.optimize import LBFGS
    >>> LBFGS(stopping=Stopping(max_iter=50)).stopping.max_iter
    50
    """

    max_iter: int = 1000
    tol: float = 1e-5
    value_tol: float = 1e-7
    gradient_tol: float = 1e-6
    window: int = 10
    max_time: float | None = None
    max_reference_size: float | None = None
    n_small_steps: int = 3
    divergence_factor: float = 1e3
    rounding_factor: float = 64.0

    def __post_init__(self) -> None:
        check_count("max_iter", self.max_iter)
        check_count("window", self.window)
        check_count("n_small_steps", self.n_small_steps)
        for name in ("tol", "value_tol", "gradient_tol", "divergence_factor", "rounding_factor"):
            check_nonnegative(name, getattr(self, name))
        for name in ("max_time", "max_reference_size"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def start(self, point: Point) -> "ConvergenceCheck":
        """Begin to watch a search that starts at `point`."""
        return ConvergenceCheck(self, point)


class ConvergenceCheck:
    """A stopping rule at work on one search."""

    def __init__(self, rule: Stopping, start: Point) -> None:
        self.rule, self.point, self.n_steps = rule, start, 0
        self.largest_gradient = start.gradient_norm
        self.largest_scaled_gradient = self._scaled_gradient(start)
        self.precision = precision(start.Y)
        self.start_time = time.monotonic()
        self.reset()

    def reset(self) -> None:
        """Forget steps that were taken under other circumstances."""
        self.n_small_steps = 0
        self.recent: deque[tuple[float, float]] = deque(maxlen=self.rule.window + 1)

    def update(self, point: Point) -> None:
        """Take note of the point a step has led to."""
        change, size = norm(point.Y - self.point.Y), self._size(point)
        self.n_small_steps = self.n_small_steps + 1 if change <= self.rule.tol * size else 0
        self.recent.append((point.value, point.gradient_norm))
        self.largest_gradient = max(self.largest_gradient, point.gradient_norm)
        self.largest_scaled_gradient = max(
            self.largest_scaled_gradient, self._scaled_gradient(point)
        )
        self.point, self.n_steps = point, self.n_steps + 1

    @staticmethod
    def _scaled_gradient(point: Point) -> float:
        """What the gradient means for a map of that size."""
        return point.gradient_norm * extent(point.Y)

    def _size(self, point: Point) -> float:
        size, largest = extent(point.Y), self.rule.max_reference_size
        return size if largest is None else min(size, largest * point.Y.shape[0] ** 0.5)

    def status(self, finished: bool) -> Status | None:
        """Whether to stop now; convergence counts only once the filter has `finished`."""
        if self.point.gradient_norm == 0:
            return Status(True, "the gradient is zero")
        reason = self._converged() if finished else None
        if reason is not None:
            return Status(True, reason)
        if self._diverged():
            return Status(
                False,
                "gradients vanish because the map has grown, not because it is a minimizer; start "
                "from a smaller map, or take another optimizer",
            )
        if self.n_steps >= self.rule.max_iter:
            return Status(False, f"max_iter={self.rule.max_iter} steps were taken")
        if (
            self.rule.max_time is not None
            and time.monotonic() - self.start_time >= self.rule.max_time
        ):
            return Status(False, f"max_time={self.rule.max_time:g} s is over")
        return None

    def failed_step(self, expected_decrease: float) -> Status:
        """What it means that no lower value was found where the slope promised a decrease."""
        small = max(self.rule.gradient_tol, self.precision**0.5) * self.largest_gradient
        if (
            expected_decrease <= self.rule.rounding_factor * self.point.rounding_error
            or self.point.gradient_norm <= small
        ):
            return Status(True, "rounding hides any further decrease")
        return Status(
            False,
            "no lower value was found along the search direction, though the gradient is not "
            "small: the gradient may not be that of the value, or too inaccurate",
        )

    @property
    def _gradient_tol(self) -> float:
        return max(self.rule.gradient_tol, self.precision)

    def _diverged(self) -> bool:
        """Whether the gradient is small only because the map has outgrown its kernel."""
        small = self.point.gradient_norm <= self._gradient_tol * self.largest_gradient
        most = self.rule.divergence_factor * self._gradient_tol * self.largest_scaled_gradient
        return small and self._scaled_gradient(self.point) > most

    def _converged(self) -> str | None:
        rule, gradient_tol = self.rule, self._gradient_tol
        small = self.point.gradient_norm <= gradient_tol * self.largest_gradient
        if (
            small
            and self._scaled_gradient(self.point) <= gradient_tol * self.largest_scaled_gradient
        ):
            return f"the gradient is below gradient_tol={gradient_tol:g} of the largest"
        if rule.tol > 0 and self.n_small_steps >= rule.n_small_steps:
            return f"steps move the map by less than tol={rule.tol:g} of its size"
        if rule.value_tol > 0 and len(self.recent) > rule.window and self._values_constant():
            return f"{rule.window} steps change the value by less than value_tol={rule.value_tol:g}"
        return None

    def _values_constant(self) -> bool:
        values, gradients = np.array(self.recent).T
        fraction = max(self.rule.value_tol, self.precision)
        small = np.ptp(values) <= fraction * abs(values[-1])
        return bool(small and gradients[-1] <= gradients[0])
