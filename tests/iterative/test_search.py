"""What can be seen of a search, and what stops it."""

import builtins
import sys
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import manifoldry as mf
from manifoldry.exceptions import ConvergenceWarning, RankWarning
from manifoldry.iterative.elastic_weight import WeightSearch
from manifoldry.optimize import (
    LBFGS,
    Callback,
    EarlyExaggeration,
    Homotopy,
    Jacobi,
    Momentum,
    Power,
    Projector,
    SpectralDirection,
    Stopping,
)
from manifoldry.semidefinite import MethodOfMultipliers

pytestmark = pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ConvergenceWarning")


class Watch:
    """A callback that keeps what it sees, and does something at one step."""

    def __init__(self, at=None, then=lambda: True):
        self.seen, self.at, self.then = [], at, then

    def __call__(self, iterate):
        self.seen.append(iterate)
        return self.then() if iterate.step.iteration == self.at else None

    @property
    def iterations(self):
        return [iterate.step.iteration for iterate in self.seen]


def interrupt():
    raise KeyboardInterrupt


def kept(watch):
    """The callback of a fit that returns after an interrupt."""
    return Callback(watch, on_interrupt="keep")


class TestCallbacks:
    def test_it_sees_every_step_once(self, make, X):
        watch = Watch()
        model = make(callback=watch).fit(X)
        assert watch.iterations == list(range(model.n_iter_ + 1))

    def test_it_sees_every_nth(self, make, X):
        watch = Watch()
        model = make(callback=Callback(watch, every=7)).fit(X)
        assert watch.iterations == list(range(0, model.n_iter_ + 1, 7))

    def test_it_sees_maps_with_their_values(self, X):
        """Of the objective at the last weight, and what it is told is what the trace says."""
        watch = Watch()
        model = mf.ElasticEmbedding(
            repulsion="uniform", weight=20.0, perplexity=10, callback=watch
        ).fit(X)
        for iterate, entry in zip(watch.seen, model.trace_, strict=True):
            assert iterate.step.value == entry["value"]
            assert np.isclose(model.objective_.value(iterate.embedding), entry["value"])
        assert np.array_equal(watch.seen[-1].embedding, model.embedding_)
        with pytest.raises(ValueError, match="read-only"):
            watch.seen[0].embedding[0] = 0

    def test_it_sees_the_map_inside_its_box(self, X):
        for optimizer in (None, Homotopy(n_steps=4, max_iter=5)):
            watch = Watch()
            mf.UKR(box=2.0, optimizer=optimizer, max_iter=15, callback=watch).fit(X)
            assert max(np.abs(iterate.embedding).max() for iterate in watch.seen) <= 2.0

    def test_it_stops_the_search(self, make, X, X_new):
        model = make(callback=Watch(at=5)).fit(X)
        assert model.n_iter_ == 5
        assert not model.converged_
        assert model.status_ == "stopped by a callback"
        assert np.isfinite(model.transform(X_new)).all()

    def test_stopping_is_no_failure(self, X):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mf.SNE(callback=Watch(at=3)).fit(X)

    def test_its_errors_are_the_callers(self, X):
        def fail(iterate):
            raise RuntimeError("no more disk")

        model = mf.SNE(callback=fail)
        with pytest.raises(RuntimeError, match="no more disk"):
            model.fit(X)
        assert not hasattr(model, "embedding_")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"function": 3}, TypeError, "function=3 must be callable"),
        ({"every": 0}, ValueError, "every=0 must be at least 1"),
        (
            {"on_interrupt": "stop"},
            ValueError,
            "on_interrupt='stop' must be one of 'raise', 'keep'",
        ),
    ],
)
def test_wrong_callbacks(options, error, match):
    with pytest.raises(error, match=match):
        Callback(**options)


class TestInterrupts:
    def test_the_best_map_stays_and_the_interrupt_goes_on(self, make, X, X_new):
        watch = Watch(at=8, then=interrupt)
        model = make(callback=watch)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert not model.converged_
        assert model.status_ == "interrupted"
        assert model.n_iter_ == 8
        assert np.isfinite(model.transform(X_new)).all()
        assert np.isfinite(model.inverse_transform(model.embedding_[:3])).all()
        seen = [np.asarray(iterate.embedding) for iterate in watch.seen]
        size = np.abs(model.embedding_).max()
        assert min(np.abs(model.embedding_ - Y).max() for Y in seen) <= 1e-12 * size

    def test_it_may_be_kept_quietly(self, make, X):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = make(callback=kept(Watch(at=8, then=interrupt))).fit(X)
        assert model.status_ == "interrupted"

    @pytest.mark.parametrize("optimizer", ["lbfgs", "gradient", "momentum"])
    def test_the_best_map_is_that_of_the_smallest_value(self, X, optimizer):
        """With momentum, whose values are not monotone, it is the latest."""
        watch = Watch(at=12, then=interrupt)
        model = mf.ElasticEmbedding(
            repulsion="uniform", weight=20.0, optimizer=optimizer, callback=kept(watch)
        ).fit(X)
        values = [iterate.step.value for iterate in watch.seen]
        best = -1 if optimizer == "momentum" else int(np.argmin(values))
        assert np.array_equal(model.embedding_, watch.seen[best].embedding)
        assert np.isclose(model.loss_, values[best])

    @pytest.mark.parametrize("step", [0, 1])
    def test_at_once(self, X, step):
        model = mf.SNE(callback=kept(Watch(at=step, then=interrupt))).fit(X)
        assert model.n_iter_ == step
        assert np.isfinite(model.embedding_).all()

    @pytest.mark.parametrize(
        "model",
        [
            mf.ElasticEmbedding(repulsion="uniform", weight=20.0, optimizer="homotopy"),
            mf.SNE(optimizer="homotopy"),
            mf.TSNE(optimizer="homotopy"),
            mf.UKR(optimizer="homotopy"),
            mf.UKR(optimizer="homotopy", box=3.0),
            mf.TSNE(early_exaggeration=EarlyExaggeration(n_iter=30)),
        ],
        ids=["EE", "SNE", "TSNE", "UKR", "UKR-box", "early exaggeration"],
    )
    def test_on_the_way_to_the_objective(self, model, X):
        """The loss is that of the objective asked for, not of the one on the way."""
        watch = Watch(at=25, then=interrupt)
        model.set_params(callback=kept(watch)).fit(X)
        assert model.status_ == "interrupted"
        if isinstance(model, mf.UKR):
            error = leave_one_out_error(model.embedding_, X)
            assert np.isclose(model.loss_, error)
            assert any(np.array_equal(model.embedding_, seen.embedding) for seen in watch.seen)
            assert np.array_equal(model.path_.embeddings[-1], model.embedding_)
        else:
            assert np.isclose(model.loss_, model.objective_.value(model.embedding_))
            assert model.objective_.weight == getattr(model, "weight_", 1.0)

    def test_while_curvature_is_computed(self, X, monkeypatch):
        monkeypatch.setattr(
            "manifoldry.optimize.homotopy.smallest_curvature", lambda *_, **__: interrupt()
        )
        model = mf.ElasticEmbedding(
            repulsion="uniform", weight=20.0, optimizer=Homotopy(curvature=True)
        )
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert len(model.path_) == 1
        assert np.isfinite(model.embedding_).all()

    def test_between_the_searches_for_a_weight(self, X, monkeypatch):
        measured = WeightSearch._error

        def error(search, Y):
            return measured(search, Y) if len(search.errors) < 3 else interrupt()

        monkeypatch.setattr(WeightSearch, "_error", error)
        model = mf.ElasticEmbedding()
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert model.status_ == "interrupted"
        assert not model.converged_
        assert len(model.path_) == 4
        assert model.weight_ == model.path_.steps[-1].parameter
        assert np.array_equal(model.embedding_, model.path_.embeddings[-1])


def leave_one_out_error(Y, X):
    """Mean squared error of predicting rows as means of the others, weighted on the map."""
    K = np.exp(-cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(K, 0)
    predicted = K @ X / K.sum(axis=1, keepdims=True)
    return np.square(X - predicted).sum(axis=1).mean()


class TestEvidence:
    def test_trace(self, make, X):
        model = make().fit(X)
        trace = model.trace_
        starts = np.flatnonzero(np.r_[True, np.diff(trace["iteration"]) == 0])
        assert len(trace) == model.n_iter_ + len(starts)
        assert model.n_iter_ == trace["iteration"][-1]
        assert model.n_evaluations_ == trace["evaluations"][-1]
        assert (trace["length"][starts] == 0).all()
        assert (np.diff(trace["evaluations"])[np.diff(trace["iteration"]) == 1] >= 1).all()

    def test_line_searches_descend(self, X):
        for model in (
            mf.SNE(init="spectral"),
            mf.SymmetricSNE(init="spectral"),
            mf.ElasticEmbedding(repulsion="uniform", weight=20.0),
        ):
            trace = model.fit(X).trace_
            assert (np.diff(trace["value"]) <= 0).all()
            assert model.loss_ == trace["value"].min()
            assert model.converged_

    def test_a_search_cut_short_says_so(self, X):
        with pytest.warns(ConvergenceWarning, match=r"SNE did not converge: max_iter=3 steps"):
            model = mf.SNE(init="spectral", max_iter=3).fit(X)
        assert not model.converged_
        assert model.n_iter_ == 3

    def test_tolerance(self, X):
        rules = (Stopping(tol=tol) for tol in (1e-2, 1e-6))
        searches = (LBFGS(SpectralDirection(), stopping=rule) for rule in rules)
        rough, fine = (mf.SNE(optimizer=search).fit(X) for search in searches)
        assert rough.n_iter_ < fine.n_iter_
        assert fine.loss_ < rough.loss_
        assert "tol=0.01" in rough.status_

    def test_an_optimizer_with_its_own_rule(self, X):
        model = mf.SNE(init="spectral", optimizer=LBFGS(stopping=Stopping(max_iter=4))).fit(X)
        assert model.n_iter_ == 4
        assert mf.SNE(init="spectral", optimizer="cg", max_iter=5).fit(X).n_iter_ == 5

    @pytest.mark.parametrize("optimizer", ["gradient", "jacobi", "diagonal", "spectral", "cg"])
    def test_searches_agree(self, X, optimizer):
        """All find the same minimum from the same start."""
        reference = mf.SymmetricSNE().fit(X)
        homotopy = Homotopy(n_steps=20, optimizer=optimizer)
        model = mf.SymmetricSNE(optimizer=homotopy, max_iter=2000).fit(X)
        assert np.isclose(model.loss_, reference.loss_, rtol=1e-3)

    @pytest.mark.parametrize("guidance", [Power(), Projector()], ids=["power", "projector"])
    def test_guidance_changes_the_way(self, X, guidance):
        start = 0.1 * np.random.default_rng(0).standard_normal((len(X), 2))
        searches = (None, LBFGS(guidance))
        plain, guided = (mf.SNE(init=start, optimizer=search).fit(X) for search in searches)
        assert guided.converged_
        first = [m.trace_["value"][1] for m in (plain, guided)]
        assert not np.isclose(*first, rtol=1e-6)

    def test_guidance_by_name(self, X):
        start = 0.1 * np.random.default_rng(0).standard_normal((len(X), 2))
        searches = ("power-lbfgs", LBFGS(Power()))
        maps = [mf.SNE(init=start, optimizer=search).fit_transform(X) for search in searches]
        assert np.array_equal(*maps)


def spelled(model):
    """The same model with its default search written out."""
    searches = {
        mf.SNE: Homotopy(n_steps=20, optimizer="spectral-lbfgs"),
        mf.SymmetricSNE: "homotopy",
        mf.TSNE: Momentum(
            Jacobi(),
            learning_rate=2.0,
            momentum=0.95,
            settling_steps=25,
            stopping=Stopping(max_iter=500, value_tol=1e-5),
        ),
        mf.ElasticEmbedding: LBFGS(SpectralDirection()),
        mf.UKR: LBFGS(
            SpectralDirection(shift=0.1), stopping=Stopping(tol=5e-3, max_reference_size=10.0)
        ),
        mf.MVU: MethodOfMultipliers(),
    }
    return clone(model).set_params(optimizer=searches[type(model)])


class TestOptimizer:
    @pytest.mark.parametrize(
        "model",
        [mf.SNE(), mf.SymmetricSNE(), mf.TSNE(), mf.ElasticEmbedding(), mf.UKR(), mf.MVU()],
        ids=lambda model: type(model).__name__,
    )
    def test_defaults_written_out(self, X, model):
        assert np.array_equal(model.fit_transform(X), spelled(model).fit_transform(X))

    @pytest.mark.parametrize("method", [mf.SNE, mf.SymmetricSNE])
    def test_a_search_or_a_start_replaces_the_homotopy(self, X, method):
        assert len(method().fit(X).path_) == 20
        for options in ({"optimizer": "spectral-lbfgs"}, {"init": "spectral"}):
            assert method(**options).fit(X).path_ is None
        one, two = (
            method(**options).fit_transform(X)
            for options in ({"optimizer": "spectral-lbfgs"}, {"init": "spectral"})
        )
        assert np.array_equal(one, two)

    def test_the_homotopy_s_own_search(self, X):
        homotopy = Homotopy(n_steps=4, optimizer=LBFGS(stopping=Stopping(max_iter=6)))
        model = mf.SNE(optimizer=homotopy).fit(X)
        assert model.n_iter_ <= 24
        assert "max_iter=6" in model.status_

    def test_max_iter_replaces_the_optimizer_s(self, X):
        optimizer = LBFGS(stopping=Stopping(max_iter=4))
        model = mf.SNE(init="spectral", optimizer=optimizer, max_iter=7).fit(X)
        assert model.n_iter_ == 7
        homotopy = Homotopy(n_steps=4, optimizer=optimizer)
        assert "max_iter=7" in mf.SNE(optimizer=homotopy, max_iter=7).fit(X).status_


class TestVerbose:
    @pytest.mark.parametrize("rich", [True, False])
    def test_progress(self, X, capsys, monkeypatch, rich):
        if not rich:
            without(monkeypatch, "rich")
        mf.SNE(verbose=True, max_iter=5).fit(X)
        out, err = capsys.readouterr()
        assert out == ""
        assert "SNE" in err
        assert "value" in err

    def test_silence_is_the_default(self, make, X, capsys):
        make(max_iter=5).fit(X)
        assert capsys.readouterr() == ("", "")


def without(monkeypatch, package):
    """Make the import of `package` fail."""
    real = builtins.__import__

    def fail(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named {package!r}")
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", fail)


class TestFittedStart:
    """``init=model.embedding_`` continues a search."""

    def test_it_takes_fewer_steps(self, X):
        for model in (
            mf.SNE(),
            mf.SymmetricSNE(),
            mf.TSNE(early_exaggeration=EarlyExaggeration(n_iter=500), perplexity=10),
            mf.ElasticEmbedding(repulsion="uniform", weight=20.0),
            mf.ElasticEmbedding(repulsion="uniform", weight=20.0, optimizer=Homotopy(n_steps=10)),
            mf.SNE(optimizer=Homotopy(n_steps=10)),
            mf.UKR(1, optimizer=Homotopy(n_steps=5, max_iter=10)),
        ):
            first = clone(model).fit(X)
            again = clone(model).set_params(optimizer=None, init=first.embedding_)
            if isinstance(model, mf.TSNE):
                again.set_params(early_exaggeration=1)
            again.fit(X)
            assert again.n_iter_ < 0.6 * first.n_iter_, model
            assert again.loss_ <= first.loss_ * (1 + 1e-3)

    def test_it_continues_where_the_search_was_stopped(self, X):
        half = mf.SNE(max_iter=5).fit(X).embedding_
        watch = Watch()
        again = mf.SNE(init=half, max_iter=500, callback=watch).fit(X)
        assert np.array_equal(watch.seen[0].embedding, half)
        assert again.converged_

    def test_a_fit_keeps_nothing_of_the_last_one(self, X):
        model = mf.SNE().fit(X)
        first = model.embedding_.copy()
        assert np.array_equal(model.fit(X).embedding_, first)

    def test_single_precision(self, X):
        single = X.astype(np.float32)
        start = mf.SNE().fit(single).embedding_
        assert start.dtype == np.float32
        assert mf.SNE(init=start).fit(single).embedding_.dtype == np.float32


class TestStart:
    def test_a_given_map_is_taken_as_it_is(self, make, X):
        if make.func is mf.MVU:
            pytest.skip("it belongs to its optimizer, and is scaled to the lengths of edges")
        start = given = np.random.default_rng(0).standard_normal((len(X), 2))
        kept, watch = start.copy(), Watch()
        make(init=start, callback=watch, max_iter=2).fit(X)
        seen = watch.seen[0].embedding
        if make().get_params().get("box"):  # made to fit
            start = start - start.mean(axis=0)
            start = np.clip(start * min(1.0, 3 / np.abs(start).max()), -0.99 * 3, 0.99 * 3)
        assert np.allclose(seen, start, atol=1e-12)
        assert np.array_equal(given, kept)

    def test_lists_will_do(self, X):
        start = np.random.default_rng(0).standard_normal((len(X), 2))
        lists, arrays = (mf.SNE(init=init).fit(X) for init in (start.tolist(), start))
        assert np.array_equal(lists.embedding_, arrays.embedding_)

    @pytest.mark.parametrize(
        "init",
        ["pca", mf.PCA(), make_pipeline(FunctionTransformer(), mf.PCA(2))],
        ids=["word", "estimator", "pipeline"],
    )
    def test_it_has_the_shape_of_its_estimator(self, X, init):
        """Up to the scale of the objective's choice, and noise of a thousandth."""
        watch = Watch()
        mf.SNE(init=init, callback=watch, max_iter=1).fit(X)
        seen, expected = watch.seen[0].embedding, mf.PCA(2).fit(X).embedding_
        scale = (seen * expected).sum() / (expected**2).sum()
        assert np.abs(seen / scale - expected).max() < 0.01 * np.abs(expected).max()

    def test_an_estimator_is_not_fitted_itself(self, X):
        init = mf.Isomap(n_neighbors=8)
        mf.SNE(init=init).fit(X)
        assert not hasattr(init, "embedding_")
        assert init.n_components is None

    def test_estimators_of_distances(self, X):
        D = cdist(X, X)
        init = mf.ClassicalMDS(metric="precomputed")
        model = mf.SNE(metric="precomputed", init=init).fit(D)
        expected = mf.SNE(init=mf.ClassicalMDS()).fit(X)
        assert np.isclose(model.loss_, expected.loss_, rtol=1e-6)

    def test_what_needs_data_says_so(self, X):
        D = cdist(X, X)
        message = "needs the data, but only distances were given"
        with pytest.raises(ValueError, match=message):
            mf.SNE(metric="precomputed", init=mf.PCA()).fit(D)

    def test_seeds(self, make, X):
        random = {"init": "random"}
        if make.func is mf.MVU:
            random = {"optimizer": MethodOfMultipliers(init="random")}
        one, two = (make(**random, random_state=seed, max_iter=5).fit(X) for seed in (1, 2))
        assert not np.allclose(one.embedding_, two.embedding_)

    def test_a_generator_is_the_callers(self, X):
        rng = np.random.default_rng(0)
        model = mf.SNE(init="random", random_state=rng).fit(X)
        first = model.embedding_.copy()
        assert not np.array_equal(model.fit(X).embedding_, first)  # it went on

    def test_more_coordinates_than_features(self, X):
        for init in ("pca", "spectral"):
            model = mf.SNE(5, init=init).fit(X)
            assert np.linalg.matrix_rank(model.embedding_) == 5

    @pytest.mark.parametrize(
        "model", [mf.SNE(), mf.SymmetricSNE(), mf.ElasticEmbedding(repulsion="uniform", weight=20)]
    )
    def test_order_of_rows(self, X, model, rotated):
        """The noise on the start goes by the rows' numbers, but the minimum is the same."""
        order = np.random.default_rng(0).permutation(len(X))
        search = LBFGS(SpectralDirection(), stopping=Stopping(tol=1e-9))
        follows = not isinstance(model, mf.ElasticEmbedding)
        model.set_params(optimizer=Homotopy(n_steps=20, optimizer=search) if follows else search)
        first = model.fit(X).embedding_
        assert rotated(model.fit(X[order]).embedding_, first[order]) < 1e-4


@pytest.mark.parametrize(
    "mistake",
    [
        {"optimizer": "fastest"},
        {"optimizer": 3},
        {"callback": 1},
        {"max_iter": 0},
    ],
)
def test_a_mistaken_search_leaves_the_model_as_it_was(X, mistake):
    model = mf.SNE().fit(X)
    kept = model.embedding_
    with pytest.raises((TypeError, ValueError)):
        model.set_params(**mistake).fit(X)
    assert model.embedding_ is kept


class TestLargeStarts:
    @pytest.mark.parametrize("method", [mf.TSNE, mf.SymmetricSNE, mf.ElasticEmbedding, mf.UKR])
    def test_they_are_told(self, X, method):
        start = 1000 * mf.PCA(2).fit_transform(X)
        with pytest.warns(ConvergenceWarning, match="init is too large"):
            method(init=start, max_iter=5).fit(X)

    @pytest.mark.parametrize("method", [mf.TSNE, mf.SymmetricSNE, mf.UKR])
    def test_fitted_maps_are_not(self, X, method):
        start = method().fit(X).embedding_
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            method(init=start).fit(X)


def test_callbacks_see_the_parameter_of_a_homotopy(X):
    watch = Watch()
    model = mf.SNE(callback=watch).fit(X)
    seen = [iterate.step.parameter for iterate in watch.seen]
    assert set(seen) == set(model.trace_["parameter"])
    assert seen == sorted(seen)


def test_outliers_that_flatten_a_map_are_told(X):
    with pytest.warns(RankWarning, match="outliers"):
        mf.UKR().fit(np.vstack([X, np.full((1, X.shape[1]), 1e6)]))
