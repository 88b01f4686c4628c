"""Speed and accuracy of entropic affinities: ``python docs/studies/entropic.py``.

Steps of the root finder (evaluations of the entropy per point), the largest error of the
perplexity, and the processor time compared with scikit-learn's binary search, which is less
accurate: it stops at an error of 1e-5 in the entropy. One thread; times are medians of five.
"""

import time

import numpy as np
from scipy.special import entr
from sklearn.datasets import load_digits
from sklearn.manifold._utils import _binary_search_perplexity

from manifoldry.affinity.bandwidths import Bandwidths, solve
from manifoldry.neighbors import NeighborGraph
from manifoldry.util.threads import threads_allowed

PERPLEXITY, NEIGHBORS, REPEATS = 30.0, 90, 5


def data():
    """Data sets by name."""
    rng = np.random.default_rng(0)
    return {
        "digits": load_digits().data,
        "Gaussian, 50 features": rng.normal(size=(5000, 50)),
        "Cauchy, 3 features": rng.standard_cauchy(size=(20_000, 3)),
        "Gaussian, 3 features": rng.normal(size=(70_000, 3)),
    }


def seconds(function):
    """Median processor time, and the last result."""
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        result = function()
        taken.append(time.process_time() - start)
    return float(np.median(taken)), result


def error(P):
    """Largest deviation of the perplexity of a row."""
    return float(np.abs(np.exp(entr(P).sum(axis=1)) - PERPLEXITY).max())


def probabilities(graph):
    """p(j|i) of every edge."""
    exponents = Bandwidths.of(graph, PERPLEXITY).exponents(graph.distances, graph.rows)
    return np.exp(-exponents).reshape(-1, NEIGHBORS)


def main():
    """Print a row per data set."""
    print("| data | points | steps, mean | most | error | s | error, sklearn | s | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, X in data().items():
        graph = NeighborGraph.build(X, NEIGHBORS)
        D = graph.distances.reshape(-1, NEIGHBORS)
        steps = solve(D**2 - D[:, :1] ** 2, PERPLEXITY).steps
        squared = (D**2).astype(np.float32)
        with threads_allowed(1):
            ours, P = seconds(lambda graph=graph: probabilities(graph))
        theirs, Q = seconds(lambda D=squared: _binary_search_perplexity(D, PERPLEXITY, 0))
        print(
            f"| {name} | {len(X)} | {steps.mean():.2f} | {steps.max()} | {error(P):.0e} | "
            f"{ours:.3f} | {error(Q):.0e} | {theirs:.3f} | {theirs / ours:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
