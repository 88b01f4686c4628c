"""Callbacks, progress bar, time estimate and trace of a search."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np

from manifoldry.exceptions import LongFitWarning, warn
from manifoldry.iterative.forecast import Forecast, duration
from manifoldry.iterative.resume import Resumable, ResumableSearches
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer, Step, trace_array
from manifoldry.util.arrays import read_only, to_numpy
from manifoldry.util.progress import ProgressReporter
from manifoldry.util.threads import thread_count
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
    forecast : Forecast
        Counts the steps and predicts the time of the fit.
    n_samples : int
        Number of points, for the message about a long fit.
    sklearn_callback : callable or None
        Calls scikit-learn's callbacks; a true result stops the search.
    searches : ResumableSearches or None
        The searches in a checkpoint; None without one.
    """

    callback: Callback
    progress: ProgressReporter
    forecast: Forecast
    n_samples: int
    sklearn_callback: Callable[[Iterate], bool] | None = None
    searches: ResumableSearches | None = None
    steps: list[Step] = field(default_factory=list)
    parameter: float = np.nan
    """The current parameter of a homotopy; NaN without one."""
    view: Callable[[Array], Array] | None = None
    """Maps the variables of the search to the embedding; None if they are the same."""
    note: str = ""
    """Text before the value of the objective in the progress bar's message."""
    growth: float = 2.0
    """The power of the number of points with which time grows."""
    long: float = 300.0
    """Predicted number of seconds from which a fit without progress bar warns."""
    stopped: bool = False
    """Whether a callback stopped the search."""
    _before: tuple[int, int] = (0, 0)
    _replayed: int = 0  # entries of `steps` that are from the checkpoint
    _predicted: bool = False

    def begin(self, parameter: float = np.nan) -> None:
        """Start another search, whose steps are numbered after the previous ones."""
        self.parameter = parameter
        self.forecast.begin(parameter)
        self._before = self.n_iter, self.n_evaluations

    def resumable(self, optimizer: Optimizer) -> Optimizer:
        """The optimizer; with a checkpoint, one whose searches are saved and continued."""
        if self.searches is None:
            return optimizer
        return Resumable(optimizer, self.searches, lambda: self.parameter, self._replay)

    def _replay(self, steps: Sequence[Step]) -> None:
        """Record steps that were taken before the fit was interrupted, without callbacks."""
        self._replayed += len(steps)
        for step in steps:
            self.steps.append(self._numbered(step))
            if step.iteration > 0:
                self.forecast.advance(timed=False)

    @property
    def n_iter(self) -> int:
        """Number of steps so far."""
        return self.steps[-1].iteration if self.steps else 0

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations of the objective so far."""
        return self.steps[-1].evaluations if self.steps else 0

    def _numbered(self, step: Step) -> Step:
        """The step, numbered after those of the previous searches."""
        return step._replace(
            iteration=step.iteration + self._before[0],
            evaluations=step.evaluations + self._before[1],
            parameter=self.parameter,
        )

    def __call__(self, iterate: Iterate) -> None:
        step = self._numbered(iterate.step)
        self.steps.append(step)
        if iterate.step.iteration > 0:
            self.forecast.advance()
            self._predict()
        self._show(step)
        if step.iteration == 0 or iterate.step.iteration > 0:  # else it is the last one again
            self._call_callbacks(iterate.embedding, step)

    def _show(self, step: Step) -> None:
        parts = (str(self.forecast), self._describe(step), self.forecast.remainder)
        self.progress.show(self.forecast.fraction, "; ".join(part for part in parts if part))

    def _describe(self, step: Step) -> str:
        return f"{self.note}value {step.value:.6g}, |g| {step.gradient_norm:.2g}"

    def _predict(self) -> None:
        """Say once how long the fit will take: in the progress report, or if that is long."""
        seconds = self.forecast.seconds
        if self._predicted or np.isnan(seconds):
            return
        self._predicted = True
        threads = thread_count()
        time = f"about {duration(seconds)} on {threads} thread{'s' if threads > 1 else ''}"
        about = f"{self.n_samples} points will take {time}"
        if self.progress.verbose:
            self.progress.say(f"{about}{self._smaller_fit(seconds, '; {} would take {}')}")
        elif seconds >= self.long:
            advice = self._smaller_fit(
                seconds, "; fit a random sample of {}, which takes {}, and transform the others"
            )
            hint = "or lower max_iter; verbose=True shows the progress"
            warn(f"{self.progress.what} of {about}{advice}, {hint}", LongFitWarning)

    def _smaller_fit(self, seconds: float, text: str, goal: float = 60.0) -> str:
        """The number of points that take about `goal` seconds, given how time grows with n."""
        points = self.n_samples * (goal / seconds) ** (1 / self.growth)
        rounded = int(float(f"{points:.1g}"))
        return text.format(rounded, f"about {duration(goal)}") if seconds > 2 * goal else ""

    def _call_callbacks(self, Y: Array, step: Step) -> None:
        function = self.callback.function if step.iteration % self.callback.every == 0 else None
        if self.sklearn_callback is None and function is None:
            return
        Y = read_only(to_numpy(Y))  # a copy, if it is in the memory of a device
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
        return trace_array(self.steps)

    def end(self, status: str) -> None:
        """Report the end of the fit."""
        if self.steps:
            text = f"{self.n_iter} steps; {self._describe(self.steps[-1])}; {status}"
            self.progress.show(1.0, text, last=True)
        if self._replayed and self._replayed == len(self.steps):
            self.progress.say("no step was taken, because the checkpoint has all of them")

    def __enter__(self) -> Self:
        self.progress.__enter__()
        if self.searches is not None and self.searches.n_saved_steps > 0:
            file, count = self.searches.checkpoint.file, self.searches.n_saved_steps
            self.progress.say(f"continues from {file}, which has {count} steps")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.progress.__exit__(kind, error, where)
        if self.searches is not None:
            self.searches.write()


def _is_true(result: Any) -> bool:
    """Whether a callback returned True; other results, such as arrays, do not stop the search."""
    return isinstance(result, bool | np.bool_) and bool(result)
