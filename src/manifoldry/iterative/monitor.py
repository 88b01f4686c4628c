"""Callbacks, progress bar and trace of a search."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np

from manifoldry.optimize.optimizer import Callback, Iterate, Step
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.typing import Array


class StopSearch(KeyboardInterrupt):
    """Raised if a callback returns True; searches handle it like Ctrl-C."""


@dataclass
class Monitor(AbstractContextManager["Monitor"]):
    """Records every step of all searches of a fit, and calls the callbacks.

    Parameters
    ----------
    callback : Callback
        The function to call, and how often.
    progress : ProgressReporter
        The progress bar.
    sklearn_callback : callable or None
        Calls scikit-learn's callbacks; a true result stops the search.
    """

    callback: Callback
    progress: ProgressReporter
    sklearn_callback: Callable[[Iterate], bool] | None = None
    steps: list[Step] = field(default_factory=list)
    parameter: float = np.nan
    """The current parameter of a homotopy; NaN without one."""
    view: Callable[[Array], Array] | None = None
    """Maps the variables of the search to the embedding; None if they are the same."""
    note: str = ""
    """Text at the beginning of the progress bar's message."""
    stopped: bool = False
    """Whether a callback stopped the search."""
    _before: tuple[int, int] = (0, 0)

    def begin(self, parameter: float = np.nan) -> None:
        """Start another search, whose steps are numbered after the previous ones."""
        self.parameter = parameter
        self._before = self.n_iter, self.n_evaluations

    @property
    def n_iter(self) -> int:
        """Number of steps so far."""
        return self.steps[-1].iteration if self.steps else 0

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations of the objective so far."""
        return self.steps[-1].evaluations if self.steps else 0

    def __call__(self, iterate: Iterate) -> None:
        step = iterate.step
        step = step._replace(
            iteration=step.iteration + self._before[0],
            evaluations=step.evaluations + self._before[1],
            parameter=self.parameter,
        )
        self.steps.append(step)
        message = f"{self.note}value {step.value:.6g}, |g| {step.gradient_norm:.2g}"
        self.progress.show(step.iteration, message)
        if step.iteration == 0 or iterate.step.iteration > 0:  # else it is the last one again
            self._call_callbacks(iterate.embedding, step)

    def _call_callbacks(self, Y: Array, step: Step) -> None:
        function = self.callback.function if step.iteration % self.callback.every == 0 else None
        if self.sklearn_callback is None and function is None:
            return
        iterate = Iterate(Y if self.view is None else self.view(Y), step)
        stop = self.sklearn_callback(iterate) if self.sklearn_callback else False
        if function is not None:
            stop = _is_true(function(iterate)) or stop
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
        self.progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.progress.__exit__(kind, error, where)


def _is_true(result: Any) -> bool:
    """Whether a callback returned True; other results, such as arrays, do not stop the search."""
    return isinstance(result, bool | np.bool_) and bool(result)
