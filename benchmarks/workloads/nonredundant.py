"""Non-redundant coordinates against the plain ones of the same method, graph included."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import mnist, roll


def embed(X, k, criterion=None, bandwidth=0.3):
    """Laplacian eigenmaps, plain or non-redundant."""
    from manifoldry import LaplacianEigenmaps, NonRedundant

    model = LaplacianEigenmaps(k, n_neighbors=10)
    if criterion is not None:
        model = NonRedundant(model, k, criterion=criterion, bandwidth=bandwidth)
    yield
    return {"embedding": model.fit(X).embedding_}


def novelty(arrays, result):
    """Mean error of predicting a coordinate from those before it, relative to its spread."""
    from manifoldry.metrics import unpredictability

    return {"novelty": unpredictability(result["embedding"])[1:].mean()}


def _workload(name, what, make, k, criteria, **options):
    contestants = [
        Contestant(f"{c}, bandwidth {b}" if c == "prediction" else c, embed,
                   options={"k": k, "criterion": c, "bandwidth": b})
        for c, b in criteria
    ]  # fmt: skip
    plain = Contestant("plain", embed, options={"k": k}, peer=True)
    return Workload(
        f"nonredundant-{name}", f"{k} non-redundant Laplacian eigenmaps of {what}", make,
        (*contestants, plain), novelty, ("novelty >= 0",), **options,
    )  # fmt: skip


PREDICTION, WIDE, GRADIENT = ("prediction", 0.3), ("prediction", 0.6), ("gradient", 0.3)
WORKLOADS = [
    _workload("roll-5k", "a Swiss roll of 5000", partial(roll, 5000), 2,
              (PREDICTION, GRADIENT), quick=True),
    _workload("mnist-15k", "15 000 of MNIST", partial(mnist, 15_000), 11,
              (PREDICTION, WIDE, GRADIENT), timeout=600),
    _workload("mnist", "MNIST, 70 000 digits", partial(mnist, 70_000), 11,
              (PREDICTION, WIDE, GRADIENT), timeout=600),
    _workload("roll-1m", "a Swiss roll of 1 000 000", partial(roll, 1_000_000), 2,
              (PREDICTION, GRADIENT), timeout=600),
]  # fmt: skip
