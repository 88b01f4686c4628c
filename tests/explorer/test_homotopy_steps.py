"""The steps of a homotopy: similarity transformations of what the optimizer has kept."""

from types import SimpleNamespace

import numpy as np
import pytest

import manifoldry
from manifoldry.explorer.drawing import Drawing
from manifoldry.explorer.homotopy_steps import HomotopySteps

METHODS = {
    "elastic": lambda: manifoldry.ElasticEmbedding(random_state=0),
    "elastic, weight": lambda: manifoldry.ElasticEmbedding(
        weight=20.0, optimizer="homotopy", random_state=0
    ),
    "t-SNE": lambda: manifoldry.TSNE(optimizer="homotopy", random_state=0),
}


@pytest.fixture(scope="module", params=METHODS)
def model(request):
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[30:] += 4
    return METHODS[request.param]().fit(X)


@pytest.fixture(scope="module")
def own_drawing(model):
    return Drawing.around(model.embedding_).drawn(model.embedding_)


def similarity_error(a, b):
    """Relative size of the difference after the best similarity, by the singular values."""
    a, b = (each.astype(float) - each.mean(axis=0, dtype=float) for each in (a, b))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return 1 - np.linalg.svd(a.T @ b, compute_uv=False).sum() ** 2


def test_the_own_step_is_the_map(model, own_drawing):
    steps = HomotopySteps.of(model)
    assert steps.embeddings[steps.own] is model.embedding_
    assert steps.drawn(steps.own, own_drawing, (0, 1)) is own_drawing
    own = getattr(model, "weight_", model.path_.column("parameter")[-1])
    assert steps.parameters[steps.own] == pytest.approx(own)


def test_parameters_are_those_of_the_path_in_order(model):
    steps = HomotopySteps.of(model)
    assert (np.diff(steps.parameters) > 0).all()
    path = model.path_.column("parameter")[model.path_.kept]
    np.testing.assert_allclose(np.setdiff1d(np.round(path, 12), np.round(steps.parameters, 12)), [])
    assert len(steps.parameters) == len(steps.embeddings) in (len(path), len(path) + 1)
    symbol = "1 / exaggeration" if isinstance(model, manifoldry.TSNE) else "λ"
    assert steps.labels()[0] == f"{symbol} = {steps.parameters[0]:.3g}"


def test_each_drawing_is_a_similarity_of_its_embedding(model, own_drawing):
    steps = HomotopySteps.of(model)
    kept = dict(zip(model.path_.column("parameter")[model.path_.kept], model.path_.embeddings,
                    strict=True))  # fmt: skip
    for i, parameter in reversed(list(enumerate(steps.parameters))):
        if i != steps.own:
            drawn = steps.drawn(i, own_drawing, (0, 1))
            assert similarity_error(drawn, kept[parameter]) < 1e-9
            assert np.abs(drawn).max() == pytest.approx(1 / 1.02, rel=1e-5)


def test_neighboring_steps_are_turned_to_match(model, own_drawing):
    """No rotation of a step is nearer to the step beside it."""
    steps = HomotopySteps.of(model)
    for i in range(len(steps.parameters) - 1):
        a, b = (steps.drawn(j, own_drawing, (0, 1)).astype(float) for j in (i, i + 1))
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        best = np.linalg.svd(a.T @ b, compute_uv=False).sum()
        assert np.trace(a.T @ b) == pytest.approx(best, rel=1e-4, abs=1e-9)


def test_the_order_of_requests_does_not_matter(model, own_drawing):
    """Except for rounding to single precision on the way."""
    count = len(HomotopySteps.of(model).parameters)
    forward, backward = HomotopySteps.of(model), HomotopySteps.of(model)
    first = [forward.drawn(i, own_drawing, (0, 1)) for i in range(count)]
    last = [backward.drawn(i, own_drawing, (0, 1)) for i in reversed(range(count))]
    np.testing.assert_array_equal(first, last[::-1])


@pytest.mark.parametrize("step", [-1, 1000])
def test_a_step_that_does_not_exist(model, own_drawing, step):
    with pytest.raises(ValueError, match=f"step={step} must be 0 to"):
        HomotopySteps.of(model).drawn(step, own_drawing, (0, 1))


def fake(parameters, weight=None):
    """A model whose path has these parameters."""
    embeddings = [np.full((4, 2), p) for p in parameters]
    path = SimpleNamespace(
        kept=list(range(len(parameters))), embeddings=embeddings,
        column=lambda name: np.array(parameters),
    )  # fmt: skip
    model = SimpleNamespace(path_=path, embedding_=np.full((4, 2), -1.0))
    if weight is not None:
        model.weight_ = weight
    return model


@pytest.mark.parametrize(
    ("path", "weight", "expected", "own"),
    [
        ([1.0, 2.0, 4.0], None, [1, 2, 4], 2),
        ([1.0, 2.0, 4.0], 2.0 * (1 + 1e-12), [1, 2, 4], 1),
        ([1.0, 2.0, 4.0], 2.5, [1, 2, 2.5, 4], 2),
        ([1.0, 2.0, 4.0], 1.5, [1, 1.5, 2, 4], 1),
        ([1.0, 2.0, 4.0], 9.0, [1, 2, 4, 9], 3),
        ([1.0, 2.0, 4.0], 0.5, [0.5, 1, 2, 4], 0),
        ([4.0, 2.0, 1.0], 2.5, [4, 2.5, 2, 1], 1),
        ([4.0, 2.0, 1.0], 1.5, [4, 2, 1.5, 1], 2),
        ([4.0, 2.0, 1.0], 9.0, [9, 4, 2, 1], 0),
        ([4.0, 2.0, 1.0], 0.5, [4, 2, 1, 0.5], 3),
    ],
)
def test_a_weight_between_those_that_were_kept(path, weight, expected, own):
    steps = HomotopySteps.of(fake(path, weight))
    np.testing.assert_allclose(steps.parameters, expected)
    assert steps.own == own
    assert (steps.embeddings[own] == -1).all()
    for i, each in enumerate(steps.embeddings):
        assert i == own or (each == steps.parameters[i]).all()


def test_models_without_a_homotopy(pca):
    assert HomotopySteps.of(pca) is None
    assert HomotopySteps.of(None) is None
    assert HomotopySteps.of(fake([1.0])) is None
