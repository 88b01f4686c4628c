"""All estimates of dimension side by side, and what they say together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import wrap

from manifoldry.dimension.consensus import Consensus
from manifoldry.dimension.profile import ScaleProfile
from manifoldry.dimension.result import Dimension
from manifoldry.util.typing import Array

_NAME_WIDTH = 24  # characters for the name of a method, and a space


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
    profile: ScaleProfile
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
        yield f"{'method':<{_NAME_WIDTH}}{'estimate':>9}  {'95 % interval':<14}  what it saw"
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
    "Intervals cover the chance of the sample, not what edges, curvature, noise or too few points "
    "do to a method; per_point tells the dimension around every point."
)


def _row(method: str, found: Dimension) -> Iterator[str]:
    value = found.value
    interval = "" if value.exact else f"{value.low:.3g} to {value.high:.3g}"
    yield from _indented(
        f"{method:<{_NAME_WIDTH}}{float(value):>9.3g}  {interval:<14}  ", found.note
    )


def _indented(start: str, text: str, line_width: int = 88) -> list[str]:
    """Lines of text that begin with `start`, further ones indented as far."""
    width = max(line_width - len(start), 36)
    lines = wrap(text, width) or [""]
    return [start + lines[0], *(" " * len(start) + line for line in lines[1:])]


def explain(consensus: Consensus) -> list[str]:
    """Sentences, the most important first."""
    checks = (
        _agreement,
        _scale,
        _sample_size,
        _edges,
        _curvature,
        _variation,
        _components,
        _duplicates,
        _ties,
        _approximate,
    )
    return [sentence for sentence in (check(consensus) for check in checks) if sentence]


def _agreement(consensus: Consensus) -> str:
    low, high = min(consensus.local_estimates), max(consensus.local_estimates)
    if round(low) == round(high):
        return f"The methods that look at neighborhoods agree on {round(low)}."
    if high < consensus.max_agreement_ratio * low:
        return f"The methods that look at neighborhoods agree on {low:.2g} to {high:.2g}."
    return (
        f"The methods that look at neighborhoods say {low:.2g} to {high:.2g}; what follows "
        "tells why they may differ."
    )


def _scale(consensus: Consensus) -> str:
    if not consensus.decreases_by_noise:
        return ""
    k, values = consensus.profile.n_neighbors, consensus.profile.values
    smallest_scale = min(
        float(values[0]), consensus.n_features
    )  # on lattices it can come out larger
    small_scale = f"up close, between a point's nearest neighbors, {smallest_scale:.2g} dimensions"
    if consensus.dimension_above_noise is None:
        return (
            f"Scale: {small_scale}, {float(values[-1]):.2g} among {2 * k[-1]} neighbors, and no "
            "scale in between at which it stays: there are directions of all sizes, such as "
            "noise nearly as wide as the data. Choose the scale that matters to you."
        )
    start = consensus.noise_scale
    return (
        f"Noise: {small_scale}, {consensus.dimension_above_noise:.2g} from {k[start]} neighbors (a distance of "
        f"{consensus.profile.radius[start]:.2g}) on. What is thinner than that is noise, or detail to "
        "be left out; the consensus is what lies beyond."
    )


def _sample_size(consensus: Consensus) -> str:
    largest = (
        max(consensus.local_estimates)
        if consensus.dimension_above_noise is None
        else consensus.dimension
    )
    if largest <= consensus.max_resolvable:
        return ""
    return (
        f"Few points: {consensus.n_distinct} points can tell about {consensus.max_resolvable:.1f} dimensions "
        "(2·log₁₀ n). Beyond that all points are nearly equally far apart and neighbor "
        "distances make the dimension come out low: take it as at least so many."
    )


def _edges(consensus: Consensus) -> str:
    if consensus.edge_bias is None:
        return ""
    by_distance, by_variance = consensus.edge_bias
    return (
        f"Edges: neighbor distances say {by_distance:.2g}, local PCA "
        f"{by_variance:.2g}. In several dimensions most points are near "
        "an edge and miss neighbors on one side, which lowers the first and hardly the second."
    )


def _curvature(consensus: Consensus) -> str:
    found = consensus.estimates.get("pca_dimension")
    if found is None:
        return ""
    pca = round(float(found))
    pca_text = f"PCA takes {pca} straight direction{'s' * (pca > 1)} for 95 % of the variance"
    high = consensus.high if consensus.dimension_above_noise is None else consensus.dimension
    if pca > high:
        return (
            f"Curvature: {pca_text}, more than the {consensus.dimension} within neighborhoods: the "
            "data bend, or are clusters that lie in different directions. " + _isomap(consensus)
        )
    if pca < consensus.low and consensus.n_connected > 1:
        return (
            f"{pca_text}, fewer than neighborhoods show: mostly the directions from one "
            "cluster to another, beside which the clusters themselves are small."
        )
    if pca < consensus.low:
        return (
            f"Thin directions: {pca_text}, fewer than neighborhoods show. Some directions are "
            "too thin to matter for the variance of the whole: noise, or fine structure."
        )
    if pca >= consensus.n_features:
        return f"The data fill all their {pca} features: fewer coordinates lose some."
    return f"No curvature to speak of: {pca_text}; a linear map may do."


def _isomap(consensus: Consensus) -> str:
    if "residual_variance_elbow" not in consensus.estimates:
        return ""
    count = consensus.elbow
    if count is None:
        return "Unrolled along the graph they show no clear number either."
    if count <= consensus.high:
        return f"Unrolled along the graph they need {count}."
    return (
        f"Even unrolled they need {count}: a closed surface such as a sphere takes one more "
        "than its dimension, and shortcuts between layers add some."
    )


def _variation(consensus: Consensus) -> str:
    if consensus.local_range is None:
        return ""
    low, high = consensus.local_range
    return (
        f"The dimension varies from {low:.2g} to {high:.2g} over the data: no one number "
        "describes them all. Color a map by per_point to see where; the correlation "
        "dimension is mostly that of the densest part."
    )


def _components(consensus: Consensus) -> str:
    if consensus.n_connected == 1:
        return ""
    return (
        f"Clusters: the neighbor graph falls into {consensus.n_connected} components. Directions between "
        "them count for PCA and not within neighborhoods."
    )


def _duplicates(consensus: Consensus) -> str:
    duplicates = consensus.n_samples - consensus.n_distinct
    if duplicates == 0:
        return ""
    return f"{duplicates} of {consensus.n_samples} rows are copies of others; copies count once."


def _ties(consensus: Consensus) -> str:
    if consensus.tied_fraction <= consensus.many_ties:
        return ""
    return (
        f"Rounded values: {consensus.tied_fraction:.0%} of the points have their two nearest neighbors at "
        "the same distance, as on a lattice; trust two_nn least."
    )


def _approximate(consensus: Consensus) -> str:
    if consensus.recall == 1:
        return ""
    return f"Neighbors were searched approximately; {consensus.recall:.1%} of them were found."
