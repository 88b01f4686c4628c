"""Weights of the elastic embedding's repulsion: ``python docs/studies/elastic_repulsion.py``.

λ is chosen automatically unless given. Columns: λ, steps, seconds of processor time, accuracy of a
1-NN classifier in the map, and of 3000 points trustworthiness (10 neighbors) and the area under
R_NX. ``--path`` shows these for all λ of the search. It takes about half an hour on one core with
10 000 points per set.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits

import manifoldry as mf
from manifoldry import datasets, metrics
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.objectives import projected_distance_weights, squared_distance_weights

DATA = {
    "mnist": lambda: (lambda d: (mf.PCA(50).fit_transform(d.X), d.labels))(datasets.load_mnist()),
    "pixels": lambda: (lambda d: (d.X, d.labels))(datasets.load_mnist()),
    "usps": lambda: (lambda d: (d.X, d.labels))(datasets.load_usps()),
    "words": lambda: (datasets.load_glove().X, None),
    "cells": lambda: (lambda d: (d.X, d.labels))(datasets.load_pbmc()),
    "digits": lambda: load_digits(return_X_y=True),
}
REPULSIONS = {
    "uniform": lambda X: "uniform",
    "exact": squared_distance_weights,
    "default": projected_distance_weights,
} | {
    f"rank {rank}": lambda X, rank=rank: projected_distance_weights(X, rank)
    for rank in (5, 10, 20, 30, 50, 100)
}


def sample(name, n):
    """At most n random rows of a set, and their labels."""
    X, labels = DATA[name]()
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    return np.ascontiguousarray(X[rows]), None if labels is None else np.asarray(labels)[rows]


def quality(X, Y, labels):
    """Accuracy, trustworthiness and area of the map Y, as text."""
    rows = np.random.default_rng(1).permutation(len(X))[:3000]
    accuracy = np.nan if labels is None else metrics.knn_accuracy(Y, labels, n_neighbors=1)
    trust = metrics.trustworthiness(X[rows], Y[rows], n_neighbors=10)
    area = metrics.coranking(X[rows], Y[rows]).area
    return f"{float(accuracy):.3f} {float(trust):.3f} {float(area):.3f}"


def main():
    """Fit and assess."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--repulsion", nargs="+", default=list(REPULSIONS), choices=REPULSIONS)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--weight", type=float)
    parser.add_argument("--path", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ManifoldryWarning)
    for name in options.data:
        X, labels = sample(name, options.points)
        for repulsion in options.repulsion:
            start = time.process_time()
            weights = REPULSIONS[repulsion](X)
            model = mf.ElasticEmbedding(weight=options.weight or "auto", repulsion=weights).fit(X)
            seconds = time.process_time() - start
            rank = getattr(weights, "rank", "")
            print(
                f"{name:7} {len(X):6} {repulsion:9} {rank:3} λ {model.weight_:8.4g} "
                f"{model.n_iter_:5} steps {seconds:6.1f} s  {quality(X, model.embedding_, labels)}",
                flush=True,
            )
            if options.path and model.path_ is not None:
                for step, Y in zip(model.path_.kept, model.path_.embeddings, strict=True):
                    parameter = model.path_.steps[step].parameter
                    print(f"    λ {parameter:8.4g}  {quality(X, Y, labels)}", flush=True)


if __name__ == "__main__":
    main()
