"""All estimates of dimension side by side, and what they say together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import wrap

from manifoldry.dimension.profile import Profile
from manifoldry.dimension.result import Dimension
from manifoldry.util.typing import Array

_NAMES = 24  # characters for the name of a method, and a space


@dataclass(frozen=True, eq=False)
class DimensionReport:
    """Estimates of the dimension by all methods, a consensus, and why they differ.

    Print it to read it. Index it by a method's name for that method's
    :class:`~manifoldry.dimension.Dimension`.

    Parameters
    ----------
    dimension : int
        The consensus.
    low, high : int
        The range in which the methods that look at neighborhoods, and the consensus, lie.
    estimates : dict of str to Dimension
        What every method said.
    skipped : dict of str to str
        Methods that had nothing to say, and why.
    profile : Profile
        The dimension at growing scales.
    reasons : list of str
        Agreement or disagreement, in words.
    n_samples, n_features : int
        Shape of the data; no features where only a graph was given.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import estimate_dimension
    >>> report = estimate_dimension(make_swiss_roll(1000, random_state=0).X)
    >>> report.dimension, report.low, report.high
    (2, 2, 2)
    >>> int(report["pca_dimension"].value)
    3
    """

    dimension: int
    low: int
    high: int
    estimates: dict[str, Dimension]
    skipped: dict[str, str]
    profile: Profile
    reasons: list[str] = field(repr=False)
    n_samples: int
    n_features: int | None

    def __getitem__(self, method: str) -> Dimension:
        if method in self.skipped:
            raise KeyError(f"{method} had nothing to say: {self.skipped[method]}")
        if method not in self.estimates:
            raise KeyError(f"no method {method!r}; there are {', '.join(self.estimates)}")
        return self.estimates[method]

    @property
    def per_point(self) -> Array | None:
        """Dimension around every point, to color a map with: by local PCA, else by likelihood."""
        for method in ("local_pca", "maximum_likelihood"):
            if method in self.estimates:
                return self.estimates[method].per_point
        return None

    def __repr__(self) -> str:
        return f"DimensionReport({self.dimension}, between {self.low} and {self.high})"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        features = "" if self.n_features is None else f" of {self.n_features} features"
        span = "" if self.low == self.high else f" (between {self.low} and {self.high})"
        yield f"Dimension of {self.n_samples} points{features}: about {self.dimension}{span}"
        yield ""
        yield f"{'method':<{_NAMES}}{'estimate':>9}  {'95 % interval':<14}  what it saw"
        for method, found in self.estimates.items():
            yield from _row(method, found)
        for method, why in self.skipped.items():
            yield from _hung(f"{method:<{_NAMES}}{'–':>9}  {'':<14}  ", why)
        yield ""
        for reason in self.reasons:
            yield from _hung("- ", reason)
        yield ""
        yield from _hung("", _FOOTNOTE)


_FOOTNOTE = (
    "Intervals cover the chance of the sample, not what edges, curvature, noise or too few points "
    "do to a method; per_point tells the dimension around every point."
)


def _row(method: str, found: Dimension) -> Iterator[str]:
    value = found.value
    interval = "" if value.exact else f"{value.low:.3g} to {value.high:.3g}"
    yield from _hung(f"{method:<{_NAMES}}{float(value):>9.3g}  {interval:<14}  ", found.note)


def _hung(start: str, text: str, line_width: int = 88) -> list[str]:
    """Lines of text that begin with `start`, further ones indented as far."""
    width = max(line_width - len(start), 36)
    lines = wrap(text, width) or [""]
    return [start + lines[0], *(" " * len(start) + line for line in lines[1:])]
