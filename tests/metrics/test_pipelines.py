"""The embedding of a pipeline is judged by the data that its last step sees."""

import numpy as np
import pytest
import sklearn.decomposition
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import PCA, Isomap, NeighborGraph, assess
from manifoldry.metrics import trustworthiness, unpredictability

X, y = load_wine(return_X_y=True)
Z = StandardScaler().fit_transform(X)


def test_assess_applies_the_steps_before_the_embedding():
    pipeline = make_pipeline(StandardScaler(), "passthrough", Isomap(2)).fit(X)
    found = assess(X, pipeline, y, X_new=X[:20])
    assert found.metrics == assess(Z, pipeline[-1], y, X_new=Z[:20]).metrics
    assert found.baseline["stress"] == assess(Z, pipeline[-1]).baseline["stress"]
    assert found.metrics["trustworthiness"] > 0.1 + trustworthiness(X, pipeline[-1])
    assert "13 features after 'standardscaler'" in str(found)
    assert found.has_neighbors


def test_single_metrics_do_the_same():
    pipeline = make_pipeline(StandardScaler(), Isomap(2)).fit(X)
    assert trustworthiness(X, pipeline) == trustworthiness(Z, pipeline[-1])
    np.testing.assert_array_equal(unpredictability(pipeline), unpredictability(pipeline[-1]))


def test_a_last_step_without_embedding_transforms_the_data():
    pipeline = make_pipeline(StandardScaler(), sklearn.decomposition.PCA(2)).fit(X)
    assert trustworthiness(X, pipeline) == pytest.approx(trustworthiness(Z, PCA(2).fit(Z)))


def test_distances_are_taken_as_they_are():
    pipeline = make_pipeline(StandardScaler(), Isomap(2)).fit(X)
    graph = NeighborGraph.build(Z, 10)
    assert trustworthiness(graph, pipeline) == trustworthiness(graph, pipeline[-1])
    D = np.linalg.norm(Z[:, None] - Z, axis=2)
    expected = trustworthiness(D, pipeline[-1], metric="precomputed")
    assert trustworthiness(D, pipeline, metric="precomputed") == expected


def test_pipelines_that_cannot_be_judged():
    with pytest.raises(ValueError, match="Isomap is not fitted; call fit first"):
        assess(X, make_pipeline(StandardScaler(), Isomap(2)))
    graph = KNeighborsTransformer(n_neighbors=60)
    pipeline = make_pipeline(graph, Isomap(2, metric="precomputed")).fit(Z)
    with pytest.raises(ValueError, match=r"\(by 'kneighborstransformer'\).*pipeline\[-1\]"):
        assess(Z, pipeline)
    assert assess(Z, pipeline[-1]).metrics["trustworthiness"] > 0.8
