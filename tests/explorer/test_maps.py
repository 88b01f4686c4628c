"""Maps against the methods of their models: transform, inverse_transform, novelty."""

from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import manifoldry
from manifoldry.explorer.maps import ExploredMap, caution
from manifoldry.extension import RelativeDistance
from manifoldry.methods.fitted_steps import divided

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6)) * [5, 4, 3, 2, 1, 0.5] + 20
NEW = RNG.normal(size=(7, 6)) * [5, 4, 3, 2, 1, 0.5] + 20

MODELS = {
    "PCA": lambda: manifoldry.PCA(2),
    "PCA of one coordinate": lambda: manifoldry.PCA(1),
    "PCA of four": lambda: manifoldry.PCA(4),
    "Isomap of three": lambda: manifoldry.Isomap(n_components=3, n_neighbors=12),
    "after scaling": lambda: make_pipeline(StandardScaler(), manifoldry.PCA(3)),
    "after two steps": lambda: make_pipeline(
        FunctionTransformer(np.log1p, np.expm1), StandardScaler(),
        manifoldry.LaplacianEigenmaps(n_components=2, n_neighbors=12),
    ),
    "UKR": lambda: manifoldry.UKR(random_state=0),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]().fit(X)


def explored(model, **options):
    steps, last = divided(model)
    return ExploredMap("m", "map", last.embedding_, last, steps, **options)


@pytest.fixture(scope="module")
def reference():
    """A drawing of the same rows, to which maps are turned."""
    points = X[:, :2] - X[:, :2].mean(axis=0)
    return points / np.abs(points).max()


@pytest.mark.parametrize("aligned", [False, True])
def test_data_at_the_positions_of_rows(model, reference, aligned):
    """The drawing is in single precision; the inverse of a drawn row is that of its coordinates."""
    shown = explored(model, reference=reference if aligned else None)
    found = shown.invert(shown.drawn.astype(np.float64))
    expected = model.inverse_transform(divided(model)[1].embedding_)
    np.testing.assert_allclose(found.data, expected, atol=1e-3, rtol=1e-4)
    np.testing.assert_array_equal(found.nearest, np.arange(90))


@pytest.mark.filterwarnings("ignore:.* off the map")
def test_data_between_the_rows(model):
    """Coordinates that are not shown are those of the nearest row."""
    shown = explored(model)
    at = RNG.uniform(-0.8, 0.8, size=(20, 2))
    nearest = cdist(at, shown.drawn.astype(float)).argmin(axis=1)
    Y = divided(model)[1].embedding_
    Z = Y[nearest].astype(float)
    # the frame is a scale and a shift of both coordinates here, found from two rows
    wanted = np.column_stack([
        np.polyval(np.polyfit(shown.drawn[:, j], Y[:, j], 1), at[:, j])
        for j in range(min(2, Y.shape[1]))
    ])  # fmt: skip
    Z[:, :2] = wanted
    found = shown.invert(at)
    np.testing.assert_array_equal(found.nearest, nearest)
    np.testing.assert_allclose(found.data, model.inverse_transform(Z), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.distance, RelativeDistance.of_points(Y).of(Z), rtol=1e-4)


def test_distance_from_the_map_grows():
    shown = explored(manifoldry.PCA(2).fit(X))
    found = shown.invert(np.array([[0.0, 0.0], [1.0, -1.0], [3.0, 3.0], [100.0, 0.0]]))
    assert found.distance[0] < 2 < found.distance[2] < found.distance[3]


def test_other_coordinates_that_are_shown():
    model = manifoldry.PCA(4).fit(X)
    shown = explored(model)
    before = shown.drawn
    shown.show(3, 1)
    assert (shown.view.shown, shown.redrawn) == ((3, 1), 1)
    for j, place in enumerate((3, 1)):
        assert np.corrcoef(shown.drawn[:, j], model.embedding_[:, place])[0, 1] == pytest.approx(1)
    found = shown.invert(shown.drawn.astype(float))
    np.testing.assert_allclose(found.data, model.inverse_transform(model.embedding_), atol=1e-3)
    shown.show(0, 1)
    np.testing.assert_array_equal(shown.drawn, before)


@pytest.mark.parametrize(
    ("coordinates", "text"),
    [((0, 4), "coordinate 4 must be 0 to 3"), ((-1, 0), "coordinate -1 must be 0 to 3"),
     ((1, 1), "coordinate 1 is given twice")],
)  # fmt: skip
def test_coordinates_that_are_not_there(coordinates, text):
    shown = explored(manifoldry.PCA(4).fit(X))
    with pytest.raises(ValueError, match=text):
        shown.show(*coordinates)
    assert (shown.view.shown, shown.redrawn) == ((0, 1), 0)


def test_new_rows_are_where_transform_puts_them(model, reference):
    shown = explored(model, reference=reference)
    steps, last = divided(model)
    drawn, novelty = shown.place(NEW)
    at_rows, _ = shown.place(X)
    np.testing.assert_allclose(at_rows, shown.drawn, atol=1e-5)
    Z = model.transform(NEW)
    expected = shown.view.frame.drawn(np.column_stack([Z, np.zeros(7)])[:, :2])
    np.testing.assert_allclose(drawn, expected, atol=1e-6)
    prepared = NEW
    for step in steps:
        prepared = step.transform(prepared)
    np.testing.assert_allclose(novelty, last.novelty(prepared))


def test_models_with_frames_as_output():
    """`set_output` changes what transform returns, not where points are."""
    plain = make_pipeline(StandardScaler(), manifoldry.PCA(2)).fit(X)
    framed = make_pipeline(StandardScaler(), manifoldry.PCA(2)).set_output(transform="pandas")
    shown, other = explored(plain), explored(framed.fit(X))
    np.testing.assert_allclose(other.place(NEW)[0], shown.place(NEW)[0], atol=1e-6)
    at = np.array([[0.2, 0.1]])
    np.testing.assert_allclose(np.asarray(other.invert(at).data), shown.invert(at).data)


def test_rows_that_are_not_embedded():
    Y = manifoldry.PCA(2).fit(X).embedding_.copy()
    Y[::3] = np.nan
    shown = ExploredMap("m", "map", Y)
    assert np.isnan(shown.drawn[::3]).all()
    assert np.isfinite(shown.drawn[1::3]).all()
    with pytest.raises(ValueError, match="the map empty has no row with finite coordinates"):
        ExploredMap("m", "empty", np.full((4, 2), np.nan))


def test_an_inverse_of_rows_that_are_not_all_embedded():
    model = manifoldry.PCA(2).fit(X)
    model.embedding_ = model.embedding_.copy()
    model.embedding_[:5] = np.nan
    shown = ExploredMap("m", "map", model.embedding_, model)
    found = shown.invert(shown.drawn[5:].astype(float))
    np.testing.assert_array_equal(found.nearest, np.arange(5, 90))


def test_what_a_map_without_a_model_cannot_do():
    shown = ExploredMap("m", "map", X[:, :2])
    assert (shown.can_place, shown.can_invert) == (False, False)
    assert "pass a fitted estimator" in shown.why_not


def test_steps_that_cannot_be_undone():
    """The absolute value has no inverse, so positions give no data; rows can still be placed."""

    class Absolute:
        def transform(self, X):
            return np.abs(X)

    model = manifoldry.PCA(2).fit(X)
    shown = ExploredMap("m", "map", model.embedding_, model, [Absolute()])
    assert (shown.can_place, shown.can_invert) == (True, False)
    assert "Absolute" in shown.why_not


def test_models_of_other_packages():
    from sklearn.manifold import MDS, Isomap

    only_fit = MDS(n_components=2, n_init=1, random_state=0, init="random").fit(X[:30])
    shown = ExploredMap("m", "map", only_fit.embedding_, only_fit)
    assert (shown.can_place, shown.can_invert) == (False, False)
    assert "MDS has no transform" in shown.why_not
    places = Isomap(n_neighbors=12).fit(X)
    shown = ExploredMap("m", "map", places.embedding_, places)
    assert (shown.can_place, shown.can_invert) == (True, False)
    drawn, novelty = shown.place(X)
    np.testing.assert_allclose(drawn, shown.drawn, atol=1e-4)
    assert novelty is None
    assert "Isomap" in shown.why_not


def test_a_model_that_was_fitted_without_data():
    D = cdist(X, X)
    model = manifoldry.Isomap(metric="precomputed", n_neighbors=12).fit(D)
    shown = ExploredMap("m", "map", model.embedding_, model)
    assert not shown.can_invert
    assert "fitted without data" in shown.why_not


def test_a_map_without_a_homotopy():
    shown = explored(manifoldry.PCA(2).fit(X))
    assert shown.positions(None) is shown.drawn
    with pytest.raises(ValueError, match="the map map has no homotopy"):
        shown.positions(0)


def similarity_error(a, b):
    """Relative size of the difference after the best similarity, by the singular values."""
    a, b = (each.astype(float) - each.mean(axis=0, dtype=float) for each in (a, b))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    return 1 - np.linalg.svd(a.T @ b, compute_uv=False).sum() ** 2


def test_other_coordinates_of_a_homotopy():
    """Its steps are drawn anew; who draws the former coordinates still can."""
    embeddings = [RNG.normal(size=(10, 3)) for _ in range(3)]
    path = SimpleNamespace(kept=[0, 1, 2], embeddings=embeddings,
                           column=lambda name: np.array([1.0, 2, 3]))  # fmt: skip
    model = SimpleNamespace(path_=path)
    model.embedding_ = embeddings[2]
    shown = ExploredMap("m", "map", embeddings[2], model)
    before = shown.view
    first = shown.positions(0)
    shown.show(2, 1)
    for view, places in ((before, [0, 1]), (shown.view, [2, 1])):
        for step in (0, 1, 2):
            drawn = view.homotopy.drawn(step, view.drawn, view.shown)
            assert similarity_error(drawn, embeddings[step][:, places]) < 1e-9
    assert similarity_error(shown.positions(0), embeddings[0][:, [2, 1]]) < 1e-9
    shown.show(0, 1)
    np.testing.assert_array_equal(shown.positions(0), first)


def test_a_view_does_not_change():
    """Who has it, such as another thread, finds rows and coordinates that belong together."""
    shown = explored(manifoldry.PCA(4).fit(X))
    view, drawn = shown.view, shown.drawn.copy()
    shown.show(3, 1)
    assert shown.view is not view
    with pytest.raises(FrozenInstanceError):
        view.shown = (2, 3)
    assert view.shown == (0, 1)
    np.testing.assert_array_equal(view.drawn, drawn)
    np.testing.assert_array_equal(view.nearest(drawn.astype(float)), np.arange(90))
    at = RNG.uniform(-1, 1, size=(30, 2))
    for each in (view, shown.view):
        np.testing.assert_array_equal(
            each.nearest(at), cdist(at, each.drawn.astype(float)).argmin(axis=1)
        )


@pytest.mark.parametrize(
    ("distance", "text"),
    [(0.0, ""), (1.5, ""), (1.6, "Near the edge"), (2.0, "Near the edge"),
     (2.1, "Off the map: 2.1"), (np.inf, "not known"), (np.nan, "not known")],
)  # fmt: skip
def test_cautions(distance, text):
    assert caution(distance).startswith(text) if text != "not known" else text in caution(distance)
    assert bool(caution(distance)) == bool(text)
