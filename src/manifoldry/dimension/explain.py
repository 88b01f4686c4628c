"""Why estimates of dimension agree or differ, in words."""

from manifoldry.dimension.evidence import Evidence


def explain(seen: Evidence) -> list[str]:
    """Sentences, the most important first."""
    tellers = (
        _agreement,
        _scale,
        _few_points,
        _edges,
        _curvature,
        _variation,
        _components,
        _copies,
        _lattice,
        _approximate,
    )
    return [sentence for sentence in (tell(seen) for tell in tellers) if sentence]


def _agreement(seen: Evidence) -> str:
    low, high = min(seen.near), max(seen.near)
    if round(low) == round(high):
        return f"The methods that look at neighborhoods agree on {round(low)}."
    if high < seen.agreement * low:
        return f"The methods that look at neighborhoods agree on {low:.2g} to {high:.2g}."
    return (
        f"The methods that look at neighborhoods say {low:.2g} to {high:.2g}; what follows "
        "tells why they may differ."
    )


def _scale(seen: Evidence) -> str:
    if not seen.thins_out:
        return ""
    k, values = seen.profile.n_neighbors, seen.profile.values
    nearest = min(float(values[0]), seen.n_features)  # on lattices it can come out larger
    close = f"up close, between a point's nearest neighbors, {nearest:.2g} dimensions"
    if seen.beyond_noise is None:
        return (
            f"Scale: {close}, {float(values[-1]):.2g} among {2 * k[-1]} neighbors, and no "
            "scale in between at which it stays: there are directions of all sizes, such as "
            "noise nearly as wide as the data. Choose the scale that matters to you."
        )
    at = seen.noise_ends
    return (
        f"Noise: {close}, {seen.beyond_noise:.2g} from {k[at]} neighbors (a distance of "
        f"{seen.profile.radius[at]:.2g}) on. What is thinner than that is noise, or detail to "
        "be left out; the consensus is what lies beyond."
    )


def _few_points(seen: Evidence) -> str:
    most = max(seen.near) if seen.beyond_noise is None else seen.dimension
    if most <= seen.most_to_tell:
        return ""
    return (
        f"Few points: {seen.n} points can tell about {seen.most_to_tell:.1f} dimensions "
        "(2·log₁₀ n). Beyond that all points are nearly equally far apart and neighbor "
        "distances make the dimension come out low: take it as at least so many."
    )


def _edges(seen: Evidence) -> str:
    if seen.lowered_by_edges is None:
        return ""
    by_distance, by_variance = seen.lowered_by_edges
    return (
        f"Edges: neighbor distances say {by_distance:.2g}, local PCA "
        f"{by_variance:.2g}. In several dimensions most points are near "
        "an edge and miss neighbors on one side, which lowers the first and hardly the second."
    )


def _curvature(seen: Evidence) -> str:
    found = seen.estimates.get("pca_dimension")
    if found is None:
        return ""
    pca = round(float(found))
    counted = f"PCA takes {pca} straight direction{'s' * (pca > 1)} for 95 % of the variance"
    high = seen.high if seen.beyond_noise is None else seen.dimension
    if pca > high:
        return (
            f"Curvature: {counted}, more than the {seen.dimension} within neighborhoods: the "
            "data bend, or are clusters that lie in different directions. " + _unrolled(seen)
        )
    if pca < seen.low and seen.components > 1:
        return (
            f"{counted}, fewer than neighborhoods show: mostly the directions from one "
            "cluster to another, beside which the clusters themselves are small."
        )
    if pca < seen.low:
        return (
            f"Thin directions: {counted}, fewer than neighborhoods show. Some directions are "
            "too thin to matter for the variance of the whole: noise, or fine structure."
        )
    if pca >= seen.n_features:
        return f"The data fill all their {pca} features: fewer coordinates lose some."
    return f"No curvature to speak of: {counted}; a linear map may do."


def _unrolled(seen: Evidence) -> str:
    if "residual_variance_elbow" not in seen.estimates:
        return ""
    count = seen.elbow
    if count is None:
        return "Unrolled along the graph they show no clear number either."
    if count <= seen.high:
        return f"Unrolled along the graph they need {count}."
    return (
        f"Even unrolled they need {count}: a closed surface such as a sphere takes one more "
        "than its dimension, and shortcuts between layers add some."
    )


def _variation(seen: Evidence) -> str:
    if seen.varies is None:
        return ""
    low, high = seen.varies
    return (
        f"The dimension varies from {low:.2g} to {high:.2g} over the data: no one number "
        "describes them all. Color a map by per_point to see where; the correlation "
        "dimension is mostly that of the densest part."
    )


def _components(seen: Evidence) -> str:
    if seen.components == 1:
        return ""
    return (
        f"Clusters: the neighbor graph falls into {seen.components} components. Directions between "
        "them count for PCA and not within neighborhoods."
    )


def _copies(seen: Evidence) -> str:
    copies = seen.n_samples - seen.n
    if copies == 0:
        return ""
    return f"{copies} of {seen.n_samples} rows are copies of others; copies count once."


def _lattice(seen: Evidence) -> str:
    if seen.ties <= seen.many_ties:
        return ""
    return (
        f"Rounded values: {seen.ties:.0%} of the points have their two nearest neighbors at "
        "the same distance, as on a lattice; trust two_nn least."
    )


def _approximate(seen: Evidence) -> str:
    if seen.recall == 1:
        return ""
    return f"Neighbors were searched approximately; {seen.recall:.1%} of them were found."
