"""How many steps t-SNE needs, and of which kind: ``python docs/studies/tsne_schedule.py``.

It takes about ten minutes on one core; options set the perplexity and the degrees of freedom. Every
schedule starts from the same principal components.
Columns: evaluations of the objective, divergence KL(P‖Q), standard deviation of the map,
trustworthiness, and the fraction of ten nearest neighbors that are among those in the map.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits, load_iris
from sklearn.neighbors import NearestNeighbors

import manifoldry as mf
from manifoldry import datasets, metrics
from manifoldry.optimize import EarlyExaggeration, Jacobi, Momentum, Stopping


def by_degree(rate, momentum, n_iter, settling=25):
    """Steps in units of each point's own attraction."""
    return Momentum(
        Jacobi(),
        learning_rate=rate,
        momentum=momentum,
        settling_steps=settling,
        stopping=Stopping(max_iter=n_iter, value_tol=1e-5),
    )


USUAL = EarlyExaggeration(12.0, 250, n_levels=1)  # constant, as van der Maaten and Hinton have it
SCHEDULES = {
    "750 steps, constant": (USUAL, Momentum(stopping=Stopping(max_iter=500))),
    "250 long steps, constant": (EarlyExaggeration(12.0, 125, n_levels=1), by_degree(4, 0.95, 160)),
    "6 levels, rate 2 (default)": (EarlyExaggeration(), by_degree(2, 0.95, 160)),
    "6 levels, rate 3": (EarlyExaggeration(), by_degree(3, 0.95, 160)),
    "6 levels, rate 4": (EarlyExaggeration(), by_degree(4, 0.95, 160)),
    "6 levels, not settled": (EarlyExaggeration(), by_degree(2, 0.95, 160, settling=0)),
    "6 levels, momentum 0.9": (EarlyExaggeration(), by_degree(2, 0.9, 160)),
    "6 levels, 620 steps": (EarlyExaggeration(), by_degree(2, 0.95, 500)),
    "3 levels": (EarlyExaggeration(n_levels=3), by_degree(2, 0.95, 160)),
    "12 levels": (EarlyExaggeration(n_levels=12), by_degree(2, 0.95, 160)),
}


def sample(X, n=6000):
    """At most n random rows, with at most 50 principal components."""
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    X = X[np.random.default_rng(0).permutation(len(X))[:n]]
    return X if X.shape[1] <= 64 else mf.PCA(50).fit_transform(X)


DATA = {
    "iris": lambda: load_iris().data,
    "cells": lambda: datasets.load_pbmc().X,
    "coil": lambda: datasets.load_coil20().X[:, ::16],
    "digits": lambda: load_digits().data,
    "roll": lambda: datasets.make_swiss_roll(3000, random_state=0).X,
    "usps": lambda: datasets.load_usps().X,
    "words": lambda: datasets.load_glove().X,
    "mnist": lambda: datasets.load_mnist().X,
}


def recall(X, Y, k=10):
    """Mean fraction of the k nearest neighbors in X that are among those in Y."""
    near = [
        NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(return_distance=False) for Z in (X, Y)
    ]
    return np.mean([len(np.intersect1d(*pair)) for pair in zip(*near, strict=True)]) / k


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--perplexity", type=float)
    parser.add_argument("--dof", type=float, default=1.0)
    parser.add_argument("names", nargs="*", default=list(DATA), help="data sets")
    options = parser.parse_args()
    kernel = {"perplexity": options.perplexity, "degrees_of_freedom": options.dof}
    for name in options.names:
        X = sample(DATA[name]())
        print(f"{name}, {len(X)} points")
        for label, (early, optimizer) in SCHEDULES.items():
            model = mf.TSNE(early_exaggeration=early, optimizer=optimizer, **kernel).fit(X)
            Y = model.embedding_
            figures = (model.loss_, Y.std(), metrics.trustworthiness(X, Y), recall(X, Y))
            print(
                f"  {label:28} {model.n_evaluations_:4}",
                *(f"{x:8.4f}" for x in figures),
                flush=True,
            )


if __name__ == "__main__":
    main()
