"""Variance that few points hold: ``python docs/studies/dominant_points.py``.

It takes about five minutes on one core. Up to six coordinates of eight methods, on real sets and on
generated ones, some with heavy tails or small clusters. Further sets are files ``*.npz`` with an
array ``X`` in a folder, passed with ``--more``; the figures in docs/decisions.md include spam,
letters, satellite images, shuttle, vehicles, vowels, DNA, musk, ionosphere and sonar of the R
packages mlbench and kernlab.

Columns: the fraction held by five points, and by 1 % and 2 % of the points. A star marks those
that `dominated_coordinates` reports.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs
from sklearn.preprocessing import scale

import manifoldry as mf
from manifoldry import datasets
from manifoldry.base.dominant_points import dominated_coordinates

METHODS = (
    mf.PCA,
    mf.KernelPCA,
    mf.LaplacianEigenmaps,
    mf.DiffusionMaps,
    mf.Isomap,
    mf.LLE,
    mf.ModifiedLLE,
    mf.LTSA,
)


def rows_of(X, n):
    """At most n random rows."""
    X = np.asarray(X, dtype=float).reshape(len(X), -1)
    return X[np.sort(np.random.default_rng(0).permutation(len(X))[:n])]


def data_sets(folder):
    """Names and data."""
    rng = np.random.default_rng(0)
    yield "digits", load_digits().data
    yield "wine", scale(load_wine().data)
    yield "cancer", scale(load_breast_cancer().data)
    yield "mnist", rows_of(datasets.load_mnist().X, 3000)
    yield "usps", rows_of(datasets.load_usps().X, 3000)
    yield "cells", datasets.load_pbmc().X
    yield "words", rows_of(datasets.load_glove().X, 3000)
    yield "frey", datasets.load_frey_faces().X
    yield "faces", datasets.load_isomap_faces().X
    yield "coil", datasets.load_coil20().X[:, ::16]
    yield "roll", datasets.make_swiss_roll(2000, random_state=0).X
    yield "clusters", make_blobs([1000, 500, 200, 60, 30], n_features=10, random_state=0)[0]
    yield "normal", rng.normal(size=(2000, 10))
    yield "Student", rng.standard_t(3, size=(2000, 10))
    yield "lognormal", rng.lognormal(size=(2000, 10))
    for path in sorted(Path(folder).glob("*.npz")) if folder else ():
        X = rows_of(np.load(path)["X"], 4500)
        yield path.stem, X
        yield f"{path.stem} scaled", scale(X)


def held(y, counts):
    """Fractions of the variance of y that the points with most of it hold."""
    squares = np.sort((y - y.mean()) ** 2)[::-1]
    return [squares[:count].sum() / squares.sum() for count in counts]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--more", help="folder with further data sets")
    warnings.simplefilter("ignore")
    for name, X in data_sets(parser.parse_args().more):
        for method in METHODS:
            try:
                Y = method(min(6, X.shape[1])).fit(X).embedding_
            except ValueError as error:  # such as too many identical rows
                print(f"{name:20} {method.__name__:18} {error}")
                continue
            Y = Y[np.isfinite(Y).all(axis=1)]
            found = {each.coordinate for each in dominated_coordinates(Y)}
            for j, y in enumerate(Y.T):
                five, one, two = held(y, [5, len(y) // 100, len(y) // 50])
                star = "*" if j in found else ""
                print(f"{name:20} {method.__name__:18} {j} {five:.2f} {one:.2f} {two:.2f} {star}")


if __name__ == "__main__":
    main()
