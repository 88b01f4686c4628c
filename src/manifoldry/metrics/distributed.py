"""Assessments of embeddings of distributed data, from samples of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from manifoldry.base.distributed import say, with_warnings
from manifoldry.base.dominant_points import takes_n_neighbors
from manifoldry.distributed.collections import is_collection
from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.samples import DisjointSamples
from manifoldry.distributed.scheduler import combined, compute, delayed
from manifoldry.exceptions import ManifoldryWarning, ignoring, warn
from manifoldry.metrics.assess import (
    Assessment,
    Sampling,
    assess,
    check_n_labels,
    label_metrics,
    novelty_metrics,
    novelty_of,
)
from manifoldry.metrics.distributed_pair import DistributedPair
from manifoldry.metrics.labels import check_none_missing, label_codes, n_missing
from manifoldry.metrics.pair import DataEmbeddingPair
from manifoldry.metrics.pipelines import refuse_steps_before
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.metrics.ranks_among_all import ComparedPoints, rank_neighbors
from manifoldry.metrics.summary import DEFAULT_THRESHOLDS
from manifoldry.metrics.unpredictability import unpredictability
from manifoldry.spectral.pca import PCA
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import FRACTION, Estimate
from manifoldry.util.lazy import is_lazy, random_sample_of
from manifoldry.util.typing import Array, IntArray, RandomState

# Rows of a sample, which one core assesses in seconds, and rows that are compared with all others.
SAMPLE = 5000
POINTS = 300
# Ranges of the metrics that are no fractions.
_RANGES = {
    "rnx_area": (-1.0, 1.0),
    "distance_rank_correlation": (-1.0, 1.0),
    "stress": (0.0, np.inf),
    "anisotropy": (1.0, np.inf),
    "magnification": (1.0, np.inf),
}
_LEAST_SAMPLE = 20


class _Found(NamedTuple):
    """What is found of one sample; only of the first one the whole assessment is kept."""

    assessment: Assessment | None
    metrics: dict[str, Estimate]
    baseline: dict[str, Estimate]
    gains: dict[str, Estimate]


class _Asked(NamedTuple):
    """Options of the assessment of a sample, and whether coordinates are in an order."""

    n_neighbors: int | None
    metric: Any
    seed: int
    ordered: bool


def assess_collection(
    X: Any,
    embedding: Any,
    labels: Any,
    *,
    n_neighbors: int | None,
    metric: Any,
    sample: Any,
    random_state: RandomState,
    X_new: Any,
) -> Assessment:
    """Assess an embedding of a collection of Dask; see :func:`manifoldry.assess`.

    The neighbor metrics compare some rows with all others. All other metrics are means over
    disjoint samples, each assessed on one worker.
    """
    model = refuse_steps_before(embedding)
    _check_arguments(metric, X_new)
    size = SAMPLE if sample == "auto" else check_count("sample", sample, _LEAST_SAMPLE)
    pair = DistributedPair.of(Rows.read(X), model)
    rng = as_generator(random_state, unset=0)
    samples = DisjointSamples.draw(pair.data.n_samples, size, rng)
    asked = _Asked(n_neighbors, metric, int(rng.integers(2**31)), hasattr(model, "eigenvalues_"))
    own_labels = _labels_of_samples(labels, pair, samples)
    found = _assess_samples(pair, own_labels.of_samples, samples, asked)
    whole = found[0].assessment
    assert whole is not None  # that of the first sample is kept
    # Components of a sample are not those of all rows, so the maps themselves do not tell.
    is_pca, has_neighbors = whole.is_pca or isinstance(model, PCA), takes_n_neighbors(model)
    whole = replace(
        whole, has_neighbors=has_neighbors, is_pca=is_pca, largest_label=own_labels.largest
    )
    whole = (
        replace(whole, pair=_among_all_rows(whole.pair, pair))
        if samples.is_whole
        else _of_all_rows(whole, found, pair, samples, metric)
    )
    return whole if X_new is None else _with_novelty(whole, model, X_new)


def _check_arguments(metric: Any, X_new: Any) -> None:
    if isinstance(metric, str) and metric == "precomputed":
        raise ValueError(
            'metric="precomputed" needs a matrix in memory, not a Dask collection; pass the data '
            "from which the distances were computed"
        )
    if is_collection(X_new):
        raise TypeError(
            "X_new is a Dask collection; pass a random sample, such as "
            f"{random_sample_of(X_new, 'X_new')}"
        )


class _Labels(NamedTuple):
    """The labels of each sample, as numbers; None for samples with a single one."""

    of_samples: list[IntArray | None]
    largest: float | None = None
    """Fraction of the rows with the most frequent label, if labels are assessed."""


def _labels_of_samples(labels: Any, pair: DistributedPair, samples: DisjointSamples) -> _Labels:
    count = len(samples.groups)
    if labels is None:
        return _Labels([None] * count)
    read = _drawn_lazy_codes if is_lazy(labels) else _drawn_codes
    codes = read(labels, pair, np.concatenate(samples.groups), 2 if samples.is_whole else 1)
    of_samples = [each if np.ptp(each) else None for each in np.split(codes, count)]
    single = sum(each is None for each in of_samples)
    if single:
        left = "are left out" if single == count else f"are means over {count - single} samples"
        warn(
            f"{single} of {count} samples of {samples.size} rows have a single label, so label "
            f"accuracies {left}; pass a larger sample, or omit labels",
            ManifoldryWarning,
        )
    largest = None if single == count else float(np.bincount(codes).max() / len(codes))
    return _Labels(of_samples, largest)


def _drawn_codes(labels: Any, pair: DistributedPair, drawn: IntArray, least: int) -> IntArray:
    """The labels of drawn rows as numbers, of an array in memory."""
    codes = label_codes(labels, pair.n_rows)
    check_n_labels(len(np.unique(codes)), pair.n_rows)
    own = codes[pair.original(drawn)]
    check_n_labels(len(np.unique(own)), len(own), least)
    return own


def _drawn_lazy_codes(labels: Any, pair: DistributedPair, drawn: IntArray, least: int) -> IntArray:
    """The labels of drawn rows as numbers; only these reach the client."""
    if hasattr(labels, "to_dask_array"):
        labels = labels.to_dask_array(lengths=True)
    if labels.shape != (pair.n_rows,):
        raise ValueError(f"labels has shape {labels.shape}, expected ({pair.n_rows},)")
    rows = pair.original(drawn)
    order = np.argsort(rows)
    missing = [delayed(n_missing)(block) for block in labels.to_delayed().ravel()]
    tasks = [labels[rows[order]], combined(missing, sum)]
    values, n_unknown = compute(tasks, "reading labels of samples")
    check_none_missing(n_unknown, pair.n_rows)
    codes = np.empty(len(rows), dtype=np.intp)
    codes[order] = label_codes(values, len(rows))
    check_n_labels(len(np.unique(codes)), len(codes), least)
    return codes


def _assess_samples(
    pair: DistributedPair, labels: list[Any], samples: DisjointSamples, asked: _Asked
) -> list[_Found]:
    assess_on_worker = delayed(partial(with_warnings, partial(_assessed, asked=asked)))
    together = zip(samples.of(pair.data), samples.of(pair.embedding), labels, strict=True)
    tasks = [assess_on_worker(x, y, own, i == 0) for i, (x, y, own) in enumerate(together)]
    what = f"assessing samples of {samples.size} rows"
    found = compute(tasks, what, verbose=current_options().verbose)
    say(each for _, said in found for each in said)
    return [each for each, _ in found]


def _assessed(X: Array, Y: Array, labels: Any, whole: bool, *, asked: _Asked) -> _Found:
    """The assessment of one sample; runs on a worker."""
    found = assess(
        X, Y, n_neighbors=asked.n_neighbors, metric=asked.metric, random_state=asked.seed
    )
    metrics = dict(found.metrics)
    if asked.ordered:
        metrics["unpredictability"] = Estimate(float(unpredictability(Y).min()))
    if labels is not None:
        metrics |= label_metrics(found.pair, found.n_neighbors, labels)
    kept = replace(found, metrics=metrics) if whole else None
    return _Found(kept, metrics, found.baseline, found.gains)


def _among_all_rows(whole: DataEmbeddingPair, pair: DistributedPair) -> DataEmbeddingPair:
    """The pair of all embedded rows, with their numbers among all rows."""
    return replace(whole, embedded_rows=pair.original(whole.embedded_rows), n_rows=pair.n_rows)


def _of_all_rows(
    first: Assessment,
    found: list[_Found],
    pair: DistributedPair,
    samples: DisjointSamples,
    metric: Any,
) -> Assessment:
    """The assessment of the first sample, with metrics of all rows and intervals."""
    count, k = min(POINTS, samples.size), first.n_neighbors
    project = _projection(first)
    X: Any = first.pair.X
    spaces = [X[:count], first.pair.Y[:count]]
    if project is not None:
        spaces.append(project(spaces[0]))
    points = ComparedPoints(samples.groups[0][:count], spaces, metric, project)
    ranks = rank_neighbors(pair.data, pair.embedding, points, k, verbose=current_options().verbose)
    metrics = _means([each.metrics for each in found]) | neighbor_metrics(ranks[0], k)
    baseline = _means([each.baseline for each in found])
    gains = _means([each.gains for each in found])
    if project is not None:
        baseline |= neighbor_metrics(ranks[1], k)
        kept, kept_by_pca = (each[0].preservation(k) for each in ranks)
        gains["neighbor_preservation"] = Estimate.of_mean(kept - kept_by_pca)
    sampling = Sampling(
        pair.data.n_samples, count, len(samples.groups), samples.size, pair.n_left_out
    )
    return replace(first, metrics=metrics, baseline=baseline, gains=gains, sampling=sampling)


def _projection(first: Assessment) -> Any:
    """The projection onto the principal components of the first sample, if there is a baseline."""
    if not first.baseline:
        return None
    with ignoring(ManifoldryWarning):  # about an embedding that nobody passed
        return PCA(first.pair.Y.shape[1]).fit(first.pair.X).transform


def neighbor_metrics(ranks: tuple[NeighborRanks, NeighborRanks], k: int) -> dict[str, Estimate]:
    """Metrics of the points that were compared with all rows."""
    in_data, in_embedding = ranks
    trust, n = 1 - in_data.rank_penalty(k), in_data.n
    threshold = DEFAULT_THRESHOLDS.point_trustworthiness
    return {
        "trustworthiness": Estimate.of_mean(trust, n, FRACTION),
        "untrustworthy_points": Estimate.of_fraction(trust < threshold, n),
        "continuity": Estimate.of_mean(1 - in_embedding.rank_penalty(k), n, FRACTION),
        "neighbor_preservation": Estimate.of_mean(in_data.preservation(k), n, FRACTION),
    }


def _means(of_samples: list[Mapping[str, Estimate]]) -> dict[str, Estimate]:
    """Means of the metrics over the samples that have them."""
    names = dict.fromkeys(name for each in of_samples for name in each)
    values = {name: [float(each[name]) for each in of_samples if name in each] for name in names}
    return {name: _mean(found, name) for name, found in values.items()}


def _mean(values: list[float], name: str) -> Estimate:
    if not np.isfinite(values).all():
        return Estimate(max(values))
    return Estimate.of_mean(np.array(values), within=_RANGES.get(name, FRACTION))


def _with_novelty(found: Assessment, model: Any, X_new: Any) -> Assessment:
    novelty = novelty_of(model, X_new)
    return replace(found, novelty=novelty, metrics=found.metrics | novelty_metrics(novelty))
