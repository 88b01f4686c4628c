"""Stopping criteria of a search: convergence, divergence, and limits on steps and time."""

import time
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from manifoldry.device.vectors import norm
from manifoldry.optimize.optimizer import Point, SearchState
from manifoldry.util.arrays import precision
from manifoldry.util.checks import check_count, check_nonnegative, check_positive


class Status(NamedTuple):
    """Why a search stopped, and whether it converged."""

    converged: bool
    message: str


@dataclass(frozen=True)
class Stopping:
    """Tolerances and limits at which a search stops.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-5
        Converged after `n_small_steps` consecutive steps with ‖ΔY‖ ≤ tol·‖Y − Ȳ‖, where Ȳ is the
        mean of the points; 0 turns the test off.
    value_tol : float, default=1e-7
        Converged when the values of the last `window` steps differ by at most this fraction (or by
        the machine epsilon of the embedding's dtype, if larger) and the gradient has not grown over
        these steps. Near a saddle point, where every small embedding starts, values hardly change
        but gradients grow. 0 turns the test off.
    gradient_tol : float, default=1e-6
        Converged when ‖G‖ is at most this fraction (or the machine epsilon of the embedding's
        dtype, if larger) of its maximum over the search, and ‖G‖·‖Y − Ȳ‖ of its own maximum. The
        second condition is there because gradients also vanish when the embedding diverges.
    window : int, default=10
        Number of steps over which `value_tol` compares values.
    max_time : float, default=None
        Maximum number of seconds, checked after every step.
    max_reference_size : float, default=None
        Upper bound on the size to which `tol` is relative, as the root mean square distance of the
        points from their mean. In a large embedding a step that is small compared with the
        embedding may still be large compared with the width of the objective's kernel.
    n_small_steps : int, default=3
        Number of consecutive small steps that `tol` requires; a single one may be due to a poor
        search direction.
    divergence_factor : float, default=1e3
        The search stops as diverged when ‖G‖ is below `gradient_tol` but ‖G‖·‖Y − Ȳ‖ exceeds its
        bound by more than this factor: the gradient is small only because the embedding has grown.
    rounding_factor : float, default=64
        When a line search fails, an expected decrease of at most this multiple of the value's
        rounding error counts as convergence. Values are sums of positive and negative terms,
        which may be that much larger than their sum.

    See Also
    --------
    Optimizer : takes it as ``stopping``.
    Solution : its ``status`` says which criterion ended the search.

    Examples
    --------
    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.optimize import LBFGS, Stopping
    >>> model = SymmetricSNE(optimizer=LBFGS(stopping=Stopping(max_iter=50, max_time=60.0)))
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
        """Return the convergence check of a search that starts at `point`.

        Parameters
        ----------
        point : Point
            The start of the search.

        Returns
        -------
        ConvergenceCheck
            Checks every step.
        """
        return ConvergenceCheck(self, point)


class ConvergenceCheck:
    """The stopping criteria applied to one search."""

    _saved = ("n_steps", "n_small_steps", "largest_gradient", "largest_scaled_gradient")

    def __init__(self, rule: Stopping, start: Point) -> None:
        self.rule, self.point, self.n_steps = rule, start, 0
        self.largest_gradient = start.gradient_norm
        self.largest_scaled_gradient = self._scaled_gradient(start)
        self.precision = precision(start.Y)
        self.start_time = time.monotonic()
        self.reset()

    def reset(self) -> None:
        """Forget past steps, because the filter has changed."""
        self.n_small_steps = 0
        self.recent: deque[tuple[float, float]] = deque(maxlen=self.rule.window + 1)

    def update(self, point: Point) -> None:
        """Record the point that a step has reached."""
        change, size = norm(point.Y - self.point.Y), self._size(point)
        self.n_small_steps = self.n_small_steps + 1 if change <= self.rule.tol * size else 0
        self.recent.append((point.value, point.gradient_norm))
        self.largest_gradient = max(self.largest_gradient, point.gradient_norm)
        self.largest_scaled_gradient = max(
            self.largest_scaled_gradient, self._scaled_gradient(point)
        )
        self.point, self.n_steps = point, self.n_steps + 1

    def saved_state(self) -> SearchState:
        """What the check remembers of past steps."""
        numbers = {name: getattr(self, name) for name in self._saved}
        elapsed = time.monotonic() - self.start_time
        return {**numbers, "recent": np.array(self.recent), "elapsed": elapsed}

    def restore(self, state: SearchState) -> None:
        """Continue from a saved state."""
        for name in self._saved:
            setattr(self, name, np.asarray(state[name]).item())
        self.recent.extend((float(value), float(norm)) for value, norm in state["recent"])
        self.start_time -= float(state["elapsed"])

    @staticmethod
    def _scaled_gradient(point: Point) -> float:
        """The gradient norm times the size of the embedding; it does not depend on the unit."""
        return point.gradient_norm * point.extent

    def _size(self, point: Point) -> float:
        size, largest = point.extent, self.rule.max_reference_size
        return size if largest is None else min(size, largest * point.Y.shape[0] ** 0.5)

    def status(self, finished: bool) -> Status | None:
        """The reason to stop now, or None; a search converges only if its filter has `finished`."""
        if self.point.gradient_norm == 0:
            return Status(True, "the gradient is zero")
        reason = self._converged() if finished else None
        if reason is not None:
            return Status(True, reason)
        if self._diverged():
            return Status(
                False,
                "the embedding diverges: the gradient is small because distances have become "
                "large, not because of a minimum; start from a smaller embedding or use another "
                "optimizer",
            )
        if self.n_steps >= self.rule.max_iter:
            return Status(False, f"max_iter={self.rule.max_iter} steps were taken")
        if (
            self.rule.max_time is not None
            and time.monotonic() - self.start_time >= self.rule.max_time
        ):
            return Status(False, f"max_time={self.rule.max_time:g} s has elapsed")
        return None

    def failed_step(self, expected_decrease: float) -> Status:
        """The status of a search whose line search found no lower value."""
        small = max(self.rule.gradient_tol, self.precision**0.5) * self.largest_gradient
        if (
            expected_decrease <= self.rule.rounding_factor * self.point.rounding_error
            or self.point.gradient_norm <= small
        ):
            return Status(True, "any further decrease is below rounding error")
        return Status(
            False,
            "the line search found no lower value although the gradient is not small; check that "
            "the gradient matches the objective and is accurate enough",
        )

    @property
    def _gradient_tol(self) -> float:
        return max(self.rule.gradient_tol, self.precision)

    def _diverged(self) -> bool:
        """Whether the gradient is small only because the embedding has grown."""
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
            return f"the gradient norm is below gradient_tol={gradient_tol:g} times its maximum"
        if rule.tol > 0 and self.n_small_steps >= rule.n_small_steps:
            return f"steps change the embedding by less than tol={rule.tol:g} of its size"
        if rule.value_tol > 0 and len(self.recent) > rule.window and self._values_constant():
            return f"{rule.window} steps change the value by less than value_tol={rule.value_tol:g}"
        return None

    def _values_constant(self) -> bool:
        values, gradients = np.array(self.recent).T
        fraction = max(self.rule.value_tol, self.precision)
        small = np.ptp(values) <= fraction * abs(values[-1])
        return bool(small and gradients[-1] <= gradients[0])
