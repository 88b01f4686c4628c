"""Time of quality metrics: trustworthiness, compared with scikit-learn and zadu."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import mnist

K = 15


def mapped(n):
    """MNIST digits and their first two principal components."""
    import numpy as np

    arrays = mnist(n)
    X = arrays["X"].astype(np.float32)
    centered = X - X.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, -2:]
    return {"X": X, "Y": np.ascontiguousarray(centered @ axes)}


def ours(X, Y, sample):
    from manifoldry.metrics import trustworthiness

    trustworthiness(X[:500], Y[:500])
    yield
    figure = trustworthiness(X, Y, n_neighbors=K, sample=sample)
    return {"figure": _one(figure)}


def assessed(X, Y):
    from manifoldry.metrics import assess

    assess(X[:500], Y[:500])
    yield
    figure = assess(X, Y, n_neighbors=K).metrics["trustworthiness"]
    return {"figure": _one(figure)}


def sklearn(X, Y):
    from sklearn.manifold import trustworthiness

    trustworthiness(X[:500], Y[:500])
    yield
    return {"figure": _one(trustworthiness(X, Y, n_neighbors=K))}


def zadu(X, Y):
    from zadu.measures import trustworthiness_continuity as both

    both.measure(X[:500], Y[:500], K)
    yield
    return {"figure": _one(both.measure(X, Y, K)["trustworthiness"])}


def _one(figure):
    import numpy as np

    return np.array([float(figure)])


def shown(arrays, result):
    return {"trust": float(result["figure"][0])}


def _workload(n, peers=(), **options):
    contestants = (
        Contestant("trustworthiness, all points", ours, options={"sample": "all"}),
        Contestant("trustworthiness, 2000 points", ours, options={"sample": 2000}),
        Contestant("assess (all metrics, with PCA)", assessed),
        *peers,
    )
    return Workload(
        f"quality-mnist-{n // 1000}k", f"Trustworthiness of a map of {n} digits, 784 features",
        partial(mapped, n), contestants, shown, dataset=f"mapped-mnist-{n}", **options,
    )  # fmt: skip


SKLEARN = Contestant("scikit-learn", sklearn, env="scikit-learn")
ZADU = Contestant("zadu (with continuity)", zadu, env="zadu")
WORKLOADS = [
    _workload(2000, (SKLEARN, ZADU), quick=True),
    _workload(10_000, (SKLEARN, ZADU)),
    _workload(20_000, (SKLEARN,)),  # zadu was stopped after five minutes
    _workload(70_000, timeout=1200),  # scikit-learn would need about 80 GB
]
