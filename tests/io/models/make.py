"""Write the small model that is kept for the present version of the file format.

    python tests/io/models/make.py

Run it once when `FORMAT` of `manifoldry.io.model_layout` changes; files of earlier versions stay as
they are, since they show that this version of manifoldry can load them.
"""

from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry as mf
from manifoldry.io.model_layout import FORMAT


def main():
    rng = np.random.default_rng(0)
    angle, height = rng.uniform(0, 5, 70), rng.uniform(0, 2, 70)
    X = np.column_stack([np.cos(angle), np.sin(angle), 10 * height])
    model = make_pipeline(StandardScaler(), mf.LaplacianEigenmaps(n_neighbors=8)).fit(X[:60])
    stem = Path(__file__).parent / f"format-{FORMAT}"
    mf.save(model, stem.with_suffix(".model"))
    np.save(stem.with_suffix(".npy"), X[60:])
    coordinates = model.transform(X[60:])
    inverse = model.inverse_transform(coordinates)
    np.savez(stem.with_suffix(".npz"), coordinates=coordinates, inverse=inverse)


if __name__ == "__main__":
    main()
