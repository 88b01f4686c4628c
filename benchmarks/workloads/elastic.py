"""The elastic embedding of a million points; no peer has this method."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import trust_of_sample
from benchmarks.workloads.tsne import between_neighbors


def million(X):
    import numpy as np

    from manifoldry import ElasticEmbedding

    yield
    model = ElasticEmbedding(repulsion="uniform").fit(X)
    # As arrays, since plain numbers are taken for parts of the time.
    figures = {"weight": np.array(model.weight_), "loss": np.array(model.loss_)}
    return {"embedding": model.embedding_, **figures}


def metrics(arrays, result):
    """The chosen λ, the value of the objective, and the trustworthiness of a sample."""
    figures = {name: float(result[name]) for name in ("weight", "loss")}
    return {**figures, "trust": trust_of_sample(arrays, result)}


WORKLOADS = [
    Workload(
        "elastic-million",
        "Elastic embedding of 1 000 000 points between digits, uniform repulsion, λ raised step by "
        "step and chosen",
        partial(between_neighbors, 1_000_000), (Contestant("ElasticEmbedding", million),), metrics,
        dataset="tsne-million", timeout=3 * 3600.0,
    ),
]  # fmt: skip
