"""Where warnings of fits inside of a cross-validation come from."""

import warnings

import numpy as np
from sklearn.model_selection import cross_val_score

import manifoldry as mf
from manifoldry.exceptions import RankWarning


def test_every_fold_of_a_cross_validation_warns_at_the_line_that_called_it():
    X = np.arange(40.0)[:, None] * np.ones(3)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        cross_val_score(mf.PCA(2), X, cv=4)
    assert [(w.category, w.filename) for w in shown] == [(RankWarning, __file__)] * 4
