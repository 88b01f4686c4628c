"""Which widths the inverse of the elastic embedding should have.

Run ``python docs/studies/elastic_inverse.py``. Rolls, S-curves, digits and the objects 11 to 20 of
COIL-20 (if the file is there) are embedded; held-out rows are embedded by `transform` and
reconstructed. Errors are root mean squares, as fractions of the spread of the data: with the
published widths, without repulsion, with repulsion of a third of its width, with the widths of
the smallest leave-one-out errors, with the best of all pairs of widths in hindsight, and by local
regression. About seven minutes on one core.
"""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
from sklearn.datasets import load_digits

from manifoldry import PCA, ElasticEmbedding
from manifoldry.datasets import find_data, load_coil20, make_s_curve, make_swiss_roll
from manifoldry.extension.regression import LocalRegression

WIDTHS = tuple(product((0.25, 0.5, 1.0, 1.4), (0.0, 0.25, 0.35, 0.5, 0.7)))


def coil():
    """Views of the ten objects that E2.8 of papers/ does not use, in the order of their angles."""
    data = load_coil20(objects=range(11, 21))
    X = data.X[np.lexsort((np.ravel(data.coordinates), data.y))].astype(float)
    return PCA(len(X) - 1).fit_transform(X)  # all distances are kept


def study(name, X, perplexity, weight):
    """Print the errors; new are every other view of the objects, otherwise the last rows."""
    views = name == "coil"
    train, new = (X[::2], X[1::2]) if views else (X[:500], X[500:700])
    model = ElasticEmbedding(
        2,
        perplexity=perplexity,
        weight=weight,
        repulsion="squared_distance",
        init="random" if views else None,
        inverse="elastic",
    ).fit(train)
    places, chosen = model.transform(new), model.inverse_
    spread = np.sqrt(((new - train.mean(axis=0)) ** 2).sum(axis=1).mean())

    def error(inverse):
        return np.sqrt(((inverse.predict(places) - new) ** 2).sum(axis=1).mean()) / spread

    def with_widths(attraction, repulsion):
        return error(replace(chosen, attraction_width=attraction, repulsion_width=repulsion))

    every = {pair: with_widths(*pair) for pair in WIDTHS}
    best = min(every, key=every.get)
    print(
        f"{name:7} perplexity {perplexity:<2} λ={model.weight_:<7.4g}"
        f"published {with_widths(1, 1):.3f}  no repulsion {every[1, 0]:.3f}"
        f"  a third {with_widths(1, 1 / 3):.3f}"
        f"  chosen {error(chosen):.3f} {chosen.attraction_width, chosen.repulsion_width}"
        f"  best {every[best]:.3f} {best}"
        f"  regression {error(LocalRegression(model.embedding_, train)):.3f}",
        flush=True,
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    digits = load_digits().data[np.random.default_rng(0).permutation(1797)]
    for weight in (100.0, 1e4, "auto"):
        for seed in range(2):
            study("roll", make_swiss_roll(700, random_state=seed).X, 20, weight)
            study("S-curve", make_s_curve(700, random_state=seed).X, 20, weight)
        study("digits", digits, 20, weight)
    if find_data("coil20") is not None:
        for perplexity, weight in ((20, 100.0), (5, 1e4)):
            study("coil", coil(), perplexity, weight)
