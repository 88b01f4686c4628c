"""Objects that are not arrays: every public function refuses them at once, without reading them."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import manifoldry as mf
from manifoldry import dimension, metrics, neighbors, optimize, plotting
from manifoldry.nonredundant import baselines

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 5))
Y = X[:, :2].copy()
LABELS = np.repeat(["a", "b"], 20)


ROTATION = np.eye(5) + 0.1 * np.triu(np.ones((5, 5)), 1) - 0.1 * np.tril(np.ones((5, 5)), -1)


class Untouchable:
    """A large sequence-like object, such as a table on a disk, that must not be read by items."""

    def _refuse(self, *_):
        raise AssertionError("an object that is not an array was read item by item")

    __len__ = __iter__ = __getitem__ = __next__ = __contains__ = _refuse


def numbers():
    raise AssertionError("a generator was read")
    yield 1.0


NOT_ARRAYS = {
    "untouchable": Untouchable(),
    "inside a list": [Untouchable(), Untouchable()],
    "generator": numbers(),
    "dict": {"a": [1.0, 2.0]},
    "set": {1.0, 2.0},
    "function": len,
}
refused = pytest.mark.parametrize("given", NOT_ARRAYS.values(), ids=NOT_ARRAYS)
REFUSAL = r"(is of type|contains a) (Untouchable|generator|dict|set|builtin_function_or_method)"


def refuses(call, given):
    with pytest.raises(TypeError, match=REFUSAL):
        call(given)


def test_fit(method):
    for given in NOT_ARRAYS.values():
        refuses(method.make().fit, given)


@refused
@pytest.mark.parametrize(
    "estimator",
    [
        mf.ManifoldParzen(),
        mf.MixtureOfFactorAnalyzers(),
        mf.FromDensity(mf.PCA(), mf.ManifoldParzen()),
        mf.ConformalInverse(mf.PCA()),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_fit_of_density_estimators_and_wrappers(estimator, given):
    refuses(estimator.fit, given)


@refused
@pytest.mark.parametrize(
    "name", ["transform", "inverse_transform", "extension_error", "score", "fit_transform"]
)
def test_methods_of_a_fitted_estimator(name, given):
    refuses(getattr(mf.PCA(2).fit(X), name), given)


@refused
def test_pairs_and_amounts_of_a_lie_transform(given):
    model = mf.LieTransform()
    refuses(lambda it: model.fit(it, X), given)
    refuses(lambda it: model.fit(X, it), given)
    model.fit(X, X @ ROTATION)
    refuses(lambda it: model.apply(X, it), given)


@refused
@pytest.mark.parametrize("estimator", [mf.TSNE, mf.UKR, mf.ElasticEmbedding])
def test_init(estimator, given):
    with pytest.raises(TypeError, match="init"):
        estimator(init=given).fit(X)


@refused
def test_building_a_graph(given):
    refuses(mf.NeighborGraph.build, given)
    refuses(mf.NeighborGraph.build(X).query, given)


# Valid arguments of public functions by name; those of ARRAYS are replaced one at a time.
ARRAYS = {
    "X": X,
    "embedding": Y,
    "target": Y,
    "labels": LABELS,
    "color": LABELS,
    "affinity": X @ X.T,
    "W": X @ X.T,
    "eigenvalues": np.arange(4.0),
    "images": X[:, :4].reshape(40, 2, 2),
    "embeddings": {"map": Y},
    "curves": {"curve": np.arange(4.0)},
    "trace": None,
}
OTHERS = {
    "estimator": mf.PCA(1).fit(X),
    "n_components": 1,
    "model": mf.PCA(2).fit(X),
    "image_shape": (5, 1),
    "walk": mf.PCA(2).fit(X).walk(X, 0, 1),
    "comparison": mf.compare(X, {"map": Y}),
}
# Arguments that are results of other functions, or of a fit.
RESULTS = {
    "path",
    "assessment",
    "sensitivity",
    "diagram",
    "plot_coranking.curves",
    "plot_path.color",
}


def arguments():
    modules = (metrics, dimension, neighbors, optimize, plotting, baselines)
    functions = [f for m in modules for name, f in vars(m).items() if not name.startswith("_")]
    for function in filter(inspect.isfunction, [*functions, mf.find_short_circuits]):
        for name in inspect.signature(function).parameters:
            full = f"{function.__name__}.{name}"
            if name in ARRAYS and not RESULTS & {name, full}:
                yield pytest.param(function, name, id=full)


def given_as(function, name, value):
    """Valid arguments of a function, one of which is replaced."""
    parameters = inspect.signature(function).parameters
    required = [
        p.name for p in parameters.values() if p.default is p.empty and p.kind != p.VAR_KEYWORD
    ]
    valid = {
        each: (ARRAYS | OTHERS).get(each, 1)
        for each in {*required, name, *({"n_components"} & set(parameters))}
    }
    # By title, as the embeddings and curves; colors of a grid may be a dict.
    grids = (plotting.plot_grid, plotting.plot_comparison)
    named = isinstance(ARRAYS[name], dict) or (function in grids and name == "color")
    return valid | {name: {"map": value} if named else value}


@refused
@pytest.mark.parametrize(("function", "name"), list(arguments()))
def test_arguments_of_public_functions(function, name, given):
    refuses(lambda it: function(**given_as(function, name, it)), given)


# ---------------------------------------------------------------- dates


TIMES = np.array([["2020-01-01", "NaT"]] * 20, dtype="M8[D]")


@pytest.mark.parametrize(
    "given",
    [
        TIMES,
        TIMES - TIMES[0, 0],
        list(TIMES),
        [list(row) for row in TIMES],
        np.array([list(row) for row in TIMES], dtype=object),
        pd.DataFrame(TIMES),
        pd.DataFrame(
            {"number": np.arange(20.0), "time": pd.to_datetime(TIMES[:, 0]).tz_localize("UTC")}
        ),
    ],
    ids=["dates", "durations", "rows", "items", "objects", "frame", "mixed frame"],
)
def test_dates_and_durations_are_refused(given):
    # Missing dates would become -9.2e18, and the others the number of days since 1970.
    for call in (mf.PCA(1).fit, mf.TSNE().fit, mf.estimate_dimension, mf.NeighborGraph.build):
        with pytest.raises(TypeError, match=r"X has dates or durations.*convert them to numbers"):
            call(given)


# ---------------------------------------------------------------- pandas


def test_series():
    one = mf.PCA(1).fit(X[:, :1]).embedding_
    np.testing.assert_array_equal(mf.PCA(1).fit(pd.Series(X[:, 0]).to_frame()).embedding_, one)
    np.testing.assert_array_equal(
        mf.PCA(1).fit([pd.Series(row) for row in X]).embedding_, mf.PCA(1).fit(X).embedding_
    )
    assert metrics.trustworthiness(X, pd.Series(Y[:, 0])) == metrics.trustworthiness(X, Y[:, 0])
    times = pd.Series(pd.to_datetime(TIMES[:, 0]))
    with pytest.raises(TypeError, match="dates or durations"):
        mf.PCA(1).fit([times, times])


def test_a_frame_may_have_columns_with_any_name():
    frame = pd.DataFrame(X[:, :4], columns=["obs", "obsm", "dtype", "X"])
    np.testing.assert_array_equal(
        mf.PCA(1).fit(frame).embedding_, mf.PCA(1).fit(X[:, :4]).embedding_
    )
    frame["time"] = pd.Timestamp("2020-01-01")
    with pytest.raises(TypeError, match="dates or durations"):
        mf.PCA(1).fit(frame)


# ---------------------------------------------------------------- AnnData


def stand_in(**entries):
    """An object with the attributes of an AnnData that are used."""
    obs = pd.DataFrame({"donor": pd.Categorical(LABELS)}, index=[f"cell {i}" for i in range(40)])
    cells = Untouchable()
    cells.X, cells.obs, cells.layers = X.copy(), obs, {"counts": X}
    cells.obsm = {"X_pca": X[:, :3].copy(), "X_umap": Y}
    cells.var_names = pd.Index([f"gene {j}" for j in range(X.shape[1])])
    vars(cells).update(entries)
    return cells


def real(**entries):
    anndata = pytest.importorskip("anndata", reason="anndata is not a dependency of the tests")
    made = stand_in(**entries)
    var = pd.DataFrame(index=made.var_names)
    cells = anndata.AnnData(made.X, obs=made.obs, var=var)
    cells.obsm.update(made.obsm)
    cells.layers.update(made.layers)
    return cells


@pytest.fixture(params=[stand_in, real])
def annotated(request):
    return request.param


def test_labels_in_another_order_are_refused(annotated):
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(40)])
    labels = pd.Series(LABELS, index=frame.index)
    cells = annotated()
    for data, series in ((frame, labels), (cells, cells.obs["donor"])):
        mf.assess(data, Y, series)
        with pytest.raises(ValueError, match=r"in another order; pass labels\.loc"):
            mf.assess(data, Y, series[::-1])
    # Another index says nothing about the order.
    mf.assess(frame, Y, labels.reset_index(drop=True))


def test_the_root_of_pseudotime(annotated):
    cells = annotated()
    model = mf.DiffusionMaps(15, n_neighbors=8).fit(X)
    np.testing.assert_array_equal(model.pseudotime(cells.X[3:4]), model.pseudotime(3))
    with pytest.raises(TypeError, match=r"root contains a .*; pass numbers"):
        model.pseudotime((cells, 3))


def test_the_variables_of_an_anndata_are_named_features(annotated):
    model = mf.LaplacianEigenmaps(2, n_neighbors=8).fit(annotated())
    assert list(model.feature_names_in_[:2]) == ["gene 0", "gene 1"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.transform(annotated())
    turned = annotated()
    turned.var_names = turned.var_names[::-1]
    last = X.shape[1] - 1
    with pytest.raises(ValueError, match=rf"variable 0 is 'gene {last}' and was 'gene 0'"):
        model.transform(turned)


def test_estimators_read_an_anndata(annotated):
    cells, model = annotated(), mf.Isomap(2, n_neighbors=8)
    np.testing.assert_array_equal(
        model.fit(cells).embedding_, mf.Isomap(2, n_neighbors=8).fit(X).embedding_
    )
    np.testing.assert_array_equal(model.transform(cells), model.embedding_)
    by_key = model.fit((cells, "X_pca")).embedding_
    np.testing.assert_array_equal(by_key, model.fit(X[:, :3]).embedding_)
    few = annotated(X=sparse.csr_matrix(np.maximum(X, 0)))
    np.testing.assert_allclose(
        np.abs(mf.PCA(1).fit(few).embedding_), np.abs(mf.PCA(1).fit(np.maximum(X, 0)).embedding_)
    )
    assert mf.TSNE(max_iter=5).fit(cells).embedding_.shape == (40, 2)


def test_layers(annotated):
    cells = annotated()
    cells.layers["counts"] = sparse.csr_matrix(np.abs(X))
    model = mf.PCA(2).fit((cells, "counts"))
    np.testing.assert_allclose(model.embedding_, mf.PCA(2).fit(np.abs(X)).embedding_, atol=1e-10)
    assert list(model.feature_names_in_) == list(cells.var_names)
    cells.var_names = cells.var_names[::-1]
    with pytest.raises(ValueError, match="variable 0 is 'gene 4' and was 'gene 0'"):
        model.transform((cells, "counts"))
    assert "5 features of layers['counts']" in str(mf.assess((cells, "counts"), "X_umap"))
    cells.obsm["counts"] = X[:, :2].copy()  # obsm comes first
    assert mf.PCA(2).fit((cells, "counts")).n_features_in_ == 2


def test_a_fitted_model_does_not_change_with_the_anndata(annotated):
    cells = annotated()
    model = mf.PCA(2).fit((cells, "X_pca"))
    graph = mf.NeighborGraph.build((cells, "X_pca"), 5)
    before = model.transform(X[:, :3]), np.array(graph.index.points)
    cells.obsm["X_pca"][:] = 0
    np.testing.assert_array_equal(model.transform(X[:, :3]), before[0])
    np.testing.assert_array_equal(graph.index.points, before[1])


def test_metrics_read_an_anndata(annotated):
    cells = annotated()
    plain = mf.assess(X, Y, LABELS).metrics
    for call in (
        lambda: mf.assess(cells, "X_umap", "donor"),
        lambda: mf.assess(X, (cells, "X_umap"), "donor"),
        lambda: mf.assess(cells, (cells, "X_umap"), LABELS),
    ):
        assert call().metrics == plain
    by_key = mf.assess((cells, "X_pca"), "X_umap", "donor")
    assert by_key.metrics == mf.assess(X[:, :3], Y, LABELS).metrics
    assert "3 features of obsm['X_pca']" in str(by_key)
    assert "5 features of X" in str(mf.assess(cells, "X_umap"))
    accuracy = metrics.knn_accuracy((cells, "X_umap"), "donor", per_point=True)
    np.testing.assert_array_equal(accuracy, metrics.knn_accuracy(Y, LABELS, per_point=True))
    assert metrics.procrustes((cells, "X_umap"), Y).error == pytest.approx(0, abs=1e-12)
    stable = [metrics.stability(mf.PCA(1), it, n_resamples=2, random_state=0) for it in (cells, X)]
    assert str(stable[0]) == str(stable[1])
    assert mf.estimate_dimension(cells).dimension == mf.estimate_dimension(X).dimension


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda c: mf.PCA().fit((c, "X_tsne")),
            ValueError,
            "X='X_tsne' is not in obsm, which has 'X_pca', 'X_umap'",
        ),
        (lambda c: mf.PCA().fit((c, "raw")), ValueError, "nor in layers, which has 'counts'"),
        (
            lambda c: mf.assess(X, c),
            TypeError,
            r"pass \(adata, key\) with a key of its obsm, which has 'X_pca', 'X_umap'",
        ),
        (lambda c: plotting.plot_embedding(c, "donor"), TypeError, r"pass \(adata, key\)"),
        (
            lambda c: mf.assess(c, "X_umap", "cell"),
            ValueError,
            "labels='cell' is not in obs, which has 'donor'",
        ),
        (lambda c: mf.assess(X, Y, "donor"), TypeError, "labels='donor' is a string"),
        (
            lambda c: plotting.plot_embedding((c, "X_umap"), "dnor"),
            ValueError,
            "color='dnor' is neither a column of obs, which has 'donor', nor one of the 5 names",
        ),
    ],
)
def test_missing_entries_of_an_anndata(annotated, call, error, message):
    with pytest.raises(error, match=message):
        call(annotated())


def test_an_anndata_without_data_or_in_a_file():
    with pytest.raises(ValueError, match="X is an AnnData without X; pass"):
        mf.PCA().fit(stand_in(X=None))
    with pytest.raises(TypeError, match=r"whose X is in a file; pass X.to_memory\(\)"):
        mf.PCA().fit(stand_in(isbacked=True))


def test_plots_read_an_anndata(annotated):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib.pyplot import close

    cells = annotated()
    ax = plotting.plot_embedding((cells, "X_umap"), "donor")
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert legend.get_title().get_text() == "donor"
    for compared in (
        mf.compare((cells, "X_pca"), {"map": "X_umap", "PCA": mf.PCA(2)}),
        mf.compare(X, {"map": Y, "stored": (cells, "X_umap")}),
    ):
        legend = plotting.plot_comparison(compared, "donor")[0].figure.legends[0]
        assert legend.get_title().get_text() == "donor"
    with pytest.raises(ValueError, match="neither a column of obs, which has 'donor'"):
        plotting.plot_comparison(compared, "dnor")
    panels = plotting.plot_grid({"map": (cells, "X_umap")}, "donor")
    assert panels[0].figure.legends[0].get_title().get_text() == "donor"
    plotting.plot_embedding((cells, "X_umap"), "red")  # not a column: a color
    for matrix in (X, sparse.csr_matrix(X)):
        ax = plotting.plot_embedding((annotated(X=matrix), "X_umap"), "gene 3")
        places = np.asarray(ax.collections[0].get_offsets())
        rows = [np.flatnonzero((place == Y).all(axis=1))[0] for place in places]
        np.testing.assert_allclose(ax.collections[0].get_array(), X[rows, 3])
        assert ax.figure.axes[1].get_ylabel() == "gene 3"
    counts = plotting.plot_embedding(
        (annotated(X=np.arange(200).reshape(40, 5)), "X_umap"), "gene 0"
    )
    assert len(counts.figure.axes) == 2  # a color bar: counts are no labels
    cells.obs["gene 3"] = LABELS  # obs comes first
    assert plotting.plot_embedding((cells, "X_umap"), "gene 3").get_legend() is not None
    cells.var_names = ["CD3E"] * 5
    with pytest.raises(ValueError, match="'CD3E' occurs 5 times in var_names"):
        plotting.plot_embedding((cells, "X_umap"), "CD3E")
    close("all")


# ---------------------------------------------------------------- images


IMAGES = rng.normal(size=(40, 2, 3))
STACKS = {
    "array": IMAGES,
    "list of arrays": list(IMAGES),
    "nested lists": IMAGES.tolist(),
    "read-only": np.broadcast_to(IMAGES[:1], IMAGES.shape),
}
STACKED = r"has shape \(40, 2, 3\), a stack of 40 arrays; pass .*reshape.*\(?len\(.*\), -1\)"


def refuses_stacks(call):
    for stack in STACKS.values():
        with pytest.raises(ValueError, match=STACKED):
            call(stack)


def test_the_remedy_for_a_stack_of_images_works():
    with pytest.raises(ValueError, match=STACKED) as caught:
        mf.PCA(1).fit(IMAGES)
    remedy = str(caught.value).split("pass ")[1].split(", one row")[0]
    assert remedy == "X.reshape(len(X), -1)"
    with pytest.raises(ValueError, match=STACKED) as caught:
        mf.PCA(1).fit(list(IMAGES))
    remedy = str(caught.value).split("pass ")[1].split(", one row")[0]
    assert remedy == "numpy.reshape(X, (len(X), -1))"
    assert np.reshape(list(IMAGES), (len(IMAGES), -1)).shape == (40, 6)


def test_estimators_refuse_stacks_of_images(method):
    refuses_stacks(method.make().fit)


@pytest.mark.parametrize("name", ["transform", "inverse_transform", "novelty", "score"])
def test_methods_of_a_fitted_estimator_refuse_stacks(name):
    refuses_stacks(getattr(mf.PCA(2).fit(X), name))


def test_other_estimators_and_graphs_refuse_stacks():
    density = mf.ManifoldParzen().fit(X)
    lie = mf.LieTransform().fit(X, X @ ROTATION)
    calls = [
        mf.ManifoldParzen().fit,
        density.score_samples,
        mf.MixtureOfFactorAnalyzers().fit,
        mf.FromDensity(mf.PCA(), mf.ManifoldParzen()).fit,
        mf.ConformalInverse(mf.PCA()).fit,
        lambda stack: lie.fit(stack, X),
        lambda stack: lie.fit(X, stack),
        lambda stack: lie.apply(stack, 1.0),
        mf.NeighborGraph.build,
        mf.NeighborGraph.build(X).query,
    ]
    for call in calls:
        refuses_stacks(call)


DATA = ("X", "embedding", "target", "embeddings")


@pytest.mark.parametrize(("function", "name"), [p for p in arguments() if p.values[1] in DATA])
def test_public_functions_refuse_stacks(function, name):
    refuses_stacks(lambda stack: function(**given_as(function, name, stack)))
