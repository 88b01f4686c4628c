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
from manifoldry.distributed.scheduler import compute, delayed, persist
from manifoldry.exceptions import ManifoldryWarning, ignoring
from manifoldry.metrics.assess import (
    Assessment,
    Sampling,
    assess,
    novelty_metrics,
    novelty_of,
)
from manifoldry.metrics.labels import label_codes
from manifoldry.metrics.pair import read_embedding
from manifoldry.metrics.pipelines import refuse_steps_before
from manifoldry.metrics.preservation import NeighborRanks
from manifoldry.metrics.ranks_among_all import ComparedPoints, rank_neighbors
from manifoldry.metrics.summary import DEFAULT_THRESHOLDS
from manifoldry.metrics.unpredictability import unpredictability
from manifoldry.spectral.pca import PCA
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.estimate import FRACTION, Estimate
from manifoldry.util.lazy import is_lazy
from manifoldry.util.typing import Array, RandomState

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
    data = Rows.read(X)
    mapped = _embedding_rows(model, data)
    rng = as_generator(random_state, unset=0)
    samples = DisjointSamples.draw(data.n_samples, size, rng)
    asked = _Asked(n_neighbors, metric, int(rng.integers(2**31)), hasattr(model, "eigenvalues_"))
    own_labels = _labels_of_samples(labels, data, samples)
    found = _assess_samples(data, mapped, own_labels, samples, asked)
    whole = found[0].assessment
    assert whole is not None  # that of the first sample is kept
    # Components of a sample are not those of all rows, so the maps themselves do not tell.
    is_pca = whole.is_pca or isinstance(model, PCA)
    whole = replace(whole, has_neighbors=takes_n_neighbors(model), is_pca=is_pca)
    if not samples.is_whole:
        whole = _of_all_rows(whole, found, data, mapped, samples, metric)
    return whole if X_new is None else _with_novelty(whole, model, X_new)


def _check_arguments(metric: Any, X_new: Any) -> None:
    if isinstance(metric, str) and metric == "precomputed":
        raise ValueError(
            'metric="precomputed" needs a matrix in memory, not a Dask collection; pass the data '
            "from which the distances were computed"
        )
    if is_collection(X_new):
        raise TypeError("X_new is a Dask collection; pass a sample, such as X_new[:1000].compute()")


def _embedding_rows(model: Any, data: Rows) -> Rows:
    """The rows of an embedding in the blocks of the data, computed once on workers."""
    import dask.array

    Y = getattr(model, "embedding_", model)
    if not is_collection(Y):
        Y = read_embedding(model)
        if np.isnan(Y).any():
            raise ValueError("embedding has rows of NaN; leave them out of X and the embedding")
        Y = dask.array.from_array(Y, chunks=(_fitting_chunks(data, len(Y)), -1))
    elif getattr(Y, "ndim", 2) == 1:
        Y = Y.to_frame() if hasattr(Y, "to_frame") else Y[:, None]
    rows = Rows.read(Y, "embedding")
    if rows.n_samples != data.n_samples:
        raise ValueError(
            f"X has {data.n_samples} rows and the embedding has {rows.n_samples}; they must be "
            "equal"
        )
    array = rows.array.rechunk({0: data.array.chunks[0]})
    return replace(rows, array=persist([array])[0])


def _fitting_chunks(data: Rows, n: int) -> Any:
    """Chunks of the data, if there are as many rows."""
    return data.array.chunks[0] if n == data.n_samples else -1


def _labels_of_samples(labels: Any, data: Rows, samples: DisjointSamples) -> list[Any]:
    """The labels of each sample, as numbers; None without labels."""
    if labels is None:
        return [None] * len(samples.groups)
    if not is_lazy(labels):
        codes = label_codes(labels, data.n_samples)
        return [codes[rows] for rows in samples.groups]
    if hasattr(labels, "to_dask_array"):
        labels = labels.to_dask_array(lengths=True)
    if labels.shape != (data.n_samples,):
        raise ValueError(f"labels has shape {labels.shape}, expected ({data.n_samples},)")
    drawn = np.concatenate(samples.groups)
    order = np.argsort(drawn)
    [values] = compute([labels[drawn[order]]], "reading labels of samples")
    codes = np.empty(len(drawn), dtype=np.intp)
    codes[order] = label_codes(values, len(drawn))
    return list(codes.reshape(len(samples.groups), -1))


def _assess_samples(
    data: Rows, embedding: Rows, labels: list[Any], samples: DisjointSamples, asked: _Asked
) -> list[_Found]:
    assess_on_worker = delayed(partial(with_warnings, partial(_assessed, asked=asked)))
    together = zip(samples.of(data), samples.of(embedding), labels, strict=True)
    tasks = [assess_on_worker(x, y, own, i == 0) for i, (x, y, own) in enumerate(together)]
    what = f"assessing samples of {samples.size} rows"
    found = compute(tasks, what, verbose=current_options().verbose)
    say(each for _, said in found for each in said)
    return [each for each, _ in found]


def _assessed(X: Array, Y: Array, labels: Any, whole: bool, *, asked: _Asked) -> _Found:
    """The assessment of one sample; runs on a worker."""
    found = assess(
        X, Y, labels, n_neighbors=asked.n_neighbors, metric=asked.metric, random_state=asked.seed
    )
    metrics = found.metrics
    if asked.ordered:
        metrics["unpredictability"] = Estimate(float(unpredictability(Y).min()))
    return _Found(found if whole else None, metrics, found.baseline, found.gains)


def _of_all_rows(
    first: Assessment,
    found: list[_Found],
    data: Rows,
    embedding: Rows,
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
    ranks = rank_neighbors(data, embedding, points, k, verbose=current_options().verbose)
    metrics = _means([each.metrics for each in found]) | _neighbor_metrics(ranks[0], k)
    baseline = _means([each.baseline for each in found])
    gains = _means([each.gains for each in found])
    if project is not None:
        baseline |= _neighbor_metrics(ranks[1], k)
        kept, kept_by_pca = (each[0].preservation(k) for each in ranks)
        gains["neighbor_preservation"] = Estimate.of_mean(kept - kept_by_pca)
    sampling = Sampling(data.n_samples, count, len(samples.groups), samples.size)
    return replace(first, metrics=metrics, baseline=baseline, gains=gains, sampling=sampling)


def _projection(first: Assessment) -> Any:
    """The projection onto the principal components of the first sample, if there is a baseline."""
    if not first.baseline:
        return None
    with ignoring(ManifoldryWarning):  # about an embedding that nobody passed
        return PCA(first.pair.Y.shape[1]).fit(first.pair.X).transform


def _neighbor_metrics(ranks: tuple[NeighborRanks, NeighborRanks], k: int) -> dict[str, Estimate]:
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
    """Means of the metrics over the samples, as far as all samples have them."""
    names = [name for name in of_samples[0] if all(name in each for each in of_samples)]
    return {name: _mean([float(each[name]) for each in of_samples], name) for name in names}


def _mean(values: list[float], name: str) -> Estimate:
    if not np.isfinite(values).all():
        return Estimate(max(values))
    return Estimate.of_mean(np.array(values), within=_RANGES.get(name, FRACTION))


def _with_novelty(found: Assessment, model: Any, X_new: Any) -> Assessment:
    novelty = novelty_of(model, X_new)
    return replace(found, novelty=novelty, metrics=found.metrics | novelty_metrics(novelty))
