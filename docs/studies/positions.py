"""How often positions of held-out data count as off the map, for every method.

``inverse_transform`` warns if many positions are farther from the embedding than 1 % of the
training points are from the others. Positions of held-out rows of the same distribution are on the
map, so a method that places them well should hardly ever cause the warning. The table has, for each
method, the fraction of such positions that are far, by data set, and of batches of 10 that warn.

    python docs/studies/positions.py
"""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.extension.far_rows import FAR, are_many
from manifoldry.extension.relative_distance import RelativeDistance

DATA = {
    "digits": load_digits().data,
    "iris": load_iris().data,
    "wine": scale(load_wine().data),
    "breast cancer": scale(load_breast_cancer().data),
    "roll": make_swiss_roll(1000, random_state=0).X,
}
METHODS = [
    mf.PCA(2),
    mf.KernelPCA(2),
    mf.LaplacianEigenmaps(2),
    mf.DiffusionMaps(2),
    mf.Isomap(2),
    mf.LLE(2),
    mf.LTSA(2),
    mf.HessianLLE(2),
    mf.SpectralClustering(3),
    mf.NonRedundant(mf.LaplacianEigenmaps(), 2),
    mf.TSNE(),
    mf.SNE(),
    mf.UKR(),
    mf.ElasticEmbedding(),
    mf.ElasticEmbedding(extension="normalized"),
]
N_REFERENCES, BATCH, N_BATCHES = 300, 10, 300


def evaluated(method, X, rng):
    """Fraction of held-out positions that are far, and of batches of them that warn."""
    order = rng.permutation(len(X))
    half = min(len(X) // 2, 800)
    Z = method.fit(X[order[:half]]).transform(X[order[half : 2 * half]])
    from_map = RelativeDistance.of_points(method.embedding_, most=N_REFERENCES)
    far = from_map.of(Z) > FAR
    batches = (rng.choice(far, BATCH, replace=False).sum() for _ in range(N_BATCHES))
    warned = [are_many(int(count), BATCH, from_map.index.n_reference) for count in batches]
    return far.mean(), np.mean(warned)


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    print("method | " + " | ".join(DATA))
    for method in METHODS:
        found = (evaluated(method, X, np.random.default_rng(0)) for X in DATA.values())
        cells = (f"{far:.1%} ({warned:.0%})" for far, warned in found)
        print(method, "|", " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
