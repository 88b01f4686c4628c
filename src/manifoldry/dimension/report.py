"""The report on all dimension estimates: a table, the consensus, and why estimates differ."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import wrap

from manifoldry.dimension.consensus import Consensus
from manifoldry.dimension.profile import ScaleProfile
from manifoldry.dimension.result import Dimension
from manifoldry.util.hints import LOCAL_DIMENSION, STANDARDIZE, WHERE_IT_VARIES
from manifoldry.util.typing import Array

_NAME_WIDTH = 24  # characters of the column of method names


@dataclass(frozen=True, eq=False)
class DimensionReport:
    """Estimates of the dimension by all methods, their consensus, and why they differ.

    Print it for a table and explanations. Index it by the name of a method for that method's
    :class:`~manifoldry.dimension.Dimension`.

    Parameters
    ----------
    dimension : int
        The consensus.
    low, high : int
        Range of the consensus and of the methods that use neighborhoods.
    estimates : dict of str to Dimension
        The estimate of each method.
    skipped : dict of str to str
        Methods that could not be computed, with the reason.
    profile : ScaleProfile
        The dimension at increasing scales.
    reasons : list of str
        Explanations of the agreement or disagreement, most important first.
    n_samples, n_features : int
        Shape of the data; `n_features` is None if only a graph was given.
    sample_size : int or None
        Number of rows of each sample of a Dask collection; `profile` and ``per_point`` are then
        those of the first sample. None for data in memory.

    See Also
    --------
    manifoldry.estimate_dimension : computes it.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> from manifoldry.dimension import estimate_dimension
    >>> report = estimate_dimension(make_swiss_roll(400, random_state=0).X)
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
    profile: ScaleProfile
    reasons: list[str] = field(repr=False)
    n_samples: int
    n_features: int | None
    sample_size: int | None = None

    def __getitem__(self, method: str) -> Dimension:
        if method in self.skipped:
            raise KeyError(f"{method} was skipped: {self.skipped[method]}")
        if method not in self.estimates:
            raise KeyError(f"unknown method {method!r}; choose from {', '.join(self.estimates)}")
        return self.estimates[method]

    @property
    def per_point(self) -> Array | None:
        """Local dimension at each point, by local PCA, else by maximum likelihood."""
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
        yield f"{'method':<{_NAME_WIDTH}}{'estimate':>9}  {'95 % interval':<14}  based on"
        for method, found in self.estimates.items():
            yield from _row(method, found)
        for method, why in self.skipped.items():
            yield from _indented(f"{method:<{_NAME_WIDTH}}{'–':>9}  {'':<14}  ", why)
        yield ""
        for reason in self.reasons:
            yield from _indented("- ", reason)
        yield ""
        yield from _indented("", _FOOTNOTE)


_FOOTNOTE = (
    "Intervals cover sampling error, not the bias due to boundaries, curvature, noise or too few "
    f"points.{LOCAL_DIMENSION.python}"
)


def _row(method: str, found: Dimension) -> Iterator[str]:
    value = found.value
    interval = "" if value.exact else f"{value.low:.3g} to {value.high:.3g}"
    yield from _indented(
        f"{method:<{_NAME_WIDTH}}{float(value):>9.3g}  {interval:<14}  ", found.note
    )


def _indented(start: str, text: str, line_width: int = 88) -> list[str]:
    """Wrap `text` after `start`; further lines are indented by the length of `start`."""
    width = max(line_width - len(start), 36)
    lines = wrap(text, width) or [""]
    return [start + lines[0], *(" " * len(start) + line for line in lines[1:])]


def explain(consensus: Consensus) -> list[str]:
    """Explanations of the estimates, most important first."""
    checks = (
        _units,
        _agreement,
        _scale,
        _sample_size,
        _boundary,
        _curvature,
        _variation,
        _components,
        _duplicates,
        _ties,
        _approximate,
    )
    return [sentence for sentence in (check(consensus) for check in checks) if sentence]


def _units(consensus: Consensus) -> str:
    if not consensus.has_uneven_columns:
        return ""
    column = consensus.dominant_column
    what = (
        f"half of the {consensus.n_features} columns have {consensus.half_fraction:.1g} of the "
        "variance, so the estimates hardly depend on them"
        if column is None
        else f"column {column} has {consensus.column_fractions[column]:.1%} of the variance of "
        f"all {consensus.n_features} columns, so the estimates describe little else"
    )
    return (
        f"Units: {what}. If the columns have different units, standardize them first, "
        f"{STANDARDIZE.python}."
    )


def _agreement(consensus: Consensus) -> str:
    low, high = min(consensus.local_estimates), max(consensus.local_estimates)
    if round(low) == round(high):
        return f"The methods that use neighborhoods agree on {round(low)}."
    if high < consensus.max_agreement_ratio * low:
        return f"The methods that use neighborhoods agree on {low:.2g} to {high:.2g}."
    return (
        f"The methods that use neighborhoods estimate {low:.2g} to {high:.2g}; possible reasons "
        "for the difference follow."
    )


def _scale(consensus: Consensus) -> str:
    if not consensus.decreases_by_noise:
        return ""
    k, values = consensus.profile.n_neighbors, consensus.profile.values
    smallest_scale = min(float(values[0]), consensus.n_features)  # lattices can exceed it
    small_scale = f"{smallest_scale:.2g} dimensions at the scale of the nearest neighbors"
    if consensus.dimension_above_noise is None:
        return (
            f"Scale: {small_scale}, {float(values[-1]):.2g} at {2 * k[-1]} neighbors, and no "
            "plateau in between. The data extend by different amounts in different directions, "
            "or the noise is nearly as large as the data; choose the scale of interest."
        )
    start = consensus.noise_scale
    return (
        f"Noise: {small_scale}, {consensus.dimension_above_noise:.2g} from {k[start]} neighbors on "
        f"(a distance of {consensus.profile.radius[start]:.2g}). The consensus is the dimension at "
        "the larger scale, which treats smaller extents as noise."
    )


def _sample_size(consensus: Consensus) -> str:
    largest: float = consensus.dimension
    if consensus.dimension_above_noise is None:
        largest = max(consensus.local_estimates)
    if largest <= consensus.max_resolvable:
        return ""
    return (
        f"Few points: {consensus.n_distinct} points resolve about "
        f"{consensus.max_resolvable:.1f} dimensions (2·log₁₀ n). In higher dimensions all points "
        "are nearly equally far apart and neighbor distances underestimate the dimension; treat "
        "the estimates as lower bounds."
    )


def _boundary(consensus: Consensus) -> str:
    if consensus.boundary_bias is None:
        return ""
    by_distance, by_variance = consensus.boundary_bias
    return (
        f"Boundary: neighbor distances estimate {by_distance:.2g}, local PCA {by_variance:.2g}. In "
        "several dimensions most points are near the boundary and lack neighbors on one side, "
        "which biases the former downward and hardly affects the latter."
    )


def _curvature(consensus: Consensus) -> str:
    found = consensus.estimates.get("pca_dimension")
    if found is None:
        return ""
    pca = round(float(found))
    pca_text = f"PCA needs {pca} direction{'s' * (pca > 1)} for 95 % of the variance"
    high = consensus.high if consensus.dimension_above_noise is None else consensus.dimension
    if pca > high:
        return (
            f"Curvature: {pca_text}, more than the {consensus.dimension} within neighborhoods. "
            "The data are curved, or form clusters in different directions. " + _isomap(consensus)
        )
    if pca < consensus.low and consensus.n_connected > 1:
        return (
            f"Clusters: {pca_text}, fewer than within neighborhoods. Most of the variance is "
            "between clusters."
        )
    if pca < consensus.low:
        return (
            f"Small variances: {pca_text}, fewer than within neighborhoods. Some directions, "
            "noise or fine structure, contribute little to the total variance."
        )
    if pca >= consensus.n_features:
        return f"The data fill all {pca} features: fewer coordinates lose information."
    if consensus.has_uneven_columns:
        return ""  # few columns look straight
    return f"Little curvature: {pca_text}; a linear embedding may suffice."


def _isomap(consensus: Consensus) -> str:
    if "residual_variance_elbow" not in consensus.estimates:
        return ""
    count = consensus.elbow
    if count is None:
        return "Isomap's residual variance has no clear elbow."
    if count <= consensus.high:
        return f"Isomap's residual variance has its elbow at {count}."
    return (
        f"Isomap needs {count} coordinates too: a closed surface such as a sphere needs one more "
        "than its dimension, and shortcuts in the neighbor graph add more."
    )


def _variation(consensus: Consensus) -> str:
    if consensus.local_range is None:
        return ""
    low, high = consensus.local_range
    return (
        f"The dimension varies from {low:.2g} to {high:.2g} over the data, so no single "
        f"number describes them. {WHERE_IT_VARIES.python} correlation "
        "dimension mostly describes the densest region."
    )


def _components(consensus: Consensus) -> str:
    if consensus.n_connected == 1:
        return ""
    return (
        f"Clusters: the neighbor graph has {consensus.n_connected} connected components. "
        "Directions between them count for PCA but not within neighborhoods."
    )


def _duplicates(consensus: Consensus) -> str:
    duplicates = consensus.n_samples - consensus.n_distinct
    if duplicates == 0:
        return ""
    return f"{duplicates} of {consensus.n_samples} rows are duplicates, which count once."


def _ties(consensus: Consensus) -> str:
    if consensus.tied_fraction <= consensus.many_ties:
        return ""
    return (
        f"Rounded values: {consensus.tied_fraction:.0%} of the points have two equally distant "
        "nearest neighbors, as on a lattice, which makes two_nn unreliable."
    )


def _approximate(consensus: Consensus) -> str:
    if consensus.recall == 1:
        return ""
    return f"The neighbor search was approximate, with a recall of {consensus.recall:.1%}."
