"""Coverage of the radii of ConformalInverse: ``python docs/studies/conformal.py``.

For every method and data set the data are split ten times. A model is fitted and calibrated on two
thirds, with a coverage of 0.9, and tested on the rest. The columns: fraction of points within the
radius; median radius divided by the 0.9 quantile of the errors, the constant radius with the same
coverage; fraction of test points that are flagged; fraction flagged of random positions in the
bounding box of the embedding; error of flagged points relative to that of the others.
"""

import warnings

import numpy as np
from sklearn.datasets import load_digits

from manifoldry import LLE, PCA, ConformalInverse, Isomap, KernelPCA, LaplacianEigenmaps
from manifoldry.datasets import DataNotFoundError, load_isomap_faces, make_swiss_roll

SPLITS = 10
METHODS = [PCA(2), KernelPCA(2), LaplacianEigenmaps(2), Isomap(2), LLE(2)]


def data_sets():
    """Names and data; faces if they are available."""
    yield "roll", make_swiss_roll(1200, random_state=0).X
    yield "noisy roll", make_swiss_roll(1200, noise=0.5, random_state=0).X
    yield "digits", load_digits().data
    try:
        yield "faces", load_isomap_faces().X
    except DataNotFoundError as missing:
        print(f"faces left out: {missing}")


def evaluated(estimator, X, seed):
    """Fraction covered, relative radius, fractions flagged of points and positions, error ratio."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    seen, unseen = X[order[: 2 * len(X) // 3]], X[order[2 * len(X) // 3 :]]
    model = ConformalInverse(estimator, coverage=0.9, random_state=seed).fit(seen)
    Z = model.transform(unseen)
    back, radius, reliable = model.inverse_with_radius(Z)
    error = np.linalg.norm(back - unseen, axis=1)
    box = rng.uniform(Z.min(axis=0), Z.max(axis=0), size=(300, Z.shape[1]))
    off = ~model.inverse_with_radius(box).reliable
    ratio = error[~reliable].mean() / error[reliable].mean() if (~reliable).any() else np.nan
    informed = np.median(radius) / np.quantile(error, 0.9)
    return (error <= radius).mean(), informed, (~reliable).mean(), off.mean(), ratio


def main():
    """Print the table of docs/trust.md."""
    print("| data | method | covered | radius | flagged | flagged in the box | error of flagged |")
    print("|---|---|---|---|---|---|---|")
    for name, X in data_sets():
        for estimator in METHODS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = np.array([evaluated(estimator, X, seed) for seed in range(SPLITS)])
            means = np.nanmean(found, axis=0)
            cells = " | ".join(f"{value:.2f}" for value in means)
            print(f"| {name} | {type(estimator).__name__} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
