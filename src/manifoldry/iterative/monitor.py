"""What others see of a search: callbacks, a progress bar, scikit-learn's protocol, the trace."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from manifoldry.optimize.optimizer import Iterate, Step
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.typing import Array

Callback: TypeAlias = Callable[[Iterate], Any]


class StopSearch(KeyboardInterrupt):
    """A callback asks to stop; searches take it as they take Ctrl-C and return their best map."""


@dataclass
class Monitor(AbstractContextManager["Monitor"]):
    """Sees every step of every search of a fit, numbers them through and passes them on.

    Parameters
    ----------
    callback : callable or None
        Called with an :class:`~manifoldry.optimize.Iterate`; a true result stops the search.
    every : int
        Steps between calls.
    ticker : ProgressReporter
        The progress bar.
    hook : callable or None
        scikit-learn's callbacks; a true result stops the search.
    """

    callback: Callback | None
    every: int
    ticker: ProgressReporter
    hook: Callable[[Iterate], bool] | None = None
    steps: list[Step] = field(default_factory=list)
    parameter: float = np.nan
    """What a homotopy is varying, at the moment."""
    view: Callable[[Array], Array] | None = None
    """From the variables of the search to the map, where they are not the same."""
    note: str = ""
    """What else the progress bar says, and first."""
    stopped: bool = False
    """Whether a callback asked to stop."""
    _before: tuple[int, int] = (0, 0)

    def begin(self, parameter: float = np.nan) -> None:
        """A further search begins; its steps follow those before."""
        self.parameter = parameter
        self._before = self.n_iter, self.n_evaluations

    @property
    def n_iter(self) -> int:
        """Steps so far."""
        return self.steps[-1].iteration if self.steps else 0

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the objective so far."""
        return self.steps[-1].evaluations if self.steps else 0

    def __call__(self, iterate: Iterate) -> None:
        step = iterate.step
        step = step._replace(
            iteration=step.iteration + self._before[0],
            evaluations=step.evaluations + self._before[1],
            parameter=self.parameter,
        )
        self.steps.append(step)
        how = f"{self.note}value {step.value:.6g}, |g| {step.gradient_norm:.2g}"
        self.ticker.show(step.iteration, how)
        if step.iteration == 0 or iterate.step.iteration > 0:  # else it was the last step before
            self._tell(iterate.embedding, step)

    def _tell(self, Y: Array, step: Step) -> None:
        called = self.callback is not None and step.iteration % self.every == 0
        if self.hook is None and not called:
            return
        seen = Iterate(Y if self.view is None else self.view(Y), step)
        stop = self.hook(seen) if self.hook else False
        if self.callback is not None and called:
            stop = self.callback(seen) or stop
        if stop:
            self.stopped = True
            raise StopSearch

    @property
    def trace(self) -> Array:
        """All steps as a structured array."""
        counts = ("iteration", "evaluations")
        kinds = [(name, int if name in counts else float) for name in Step._fields]
        return np.array(self.steps, dtype=kinds)

    def __enter__(self) -> Self:
        self.ticker.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.ticker.__exit__(kind, error, where)
