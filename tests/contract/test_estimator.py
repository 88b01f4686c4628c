"""Properties that all estimators have."""

import inspect
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import manifoldry as mf
from manifoldry.exceptions import ConvergenceWarning, NoveltyWarning, VersionWarning
from manifoldry.metrics import reconstruction

SOLVERS = ["dense", "lanczos", "randomized", "lobpcg", "shift_invert"]
pytestmark = pytest.mark.filterwarnings("ignore:.* max_iter=25 steps")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


def labels(X):
    return (X[:, 0] + X[:, 1] > 6).astype(int)


def frame(X, kind="pandas"):
    names = [f"feature {i}" for i in range(X.shape[1])]
    return FRAMES[kind](dict(zip(names, X.T, strict=True)))


def every_other(M):
    """The same numbers with gaps between them."""
    wide = np.zeros((2 * M.shape[0], 2 * M.shape[1]))
    wide[::2, ::2] = M
    return wide[::2, ::2]


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "strided": every_other,
    "pandas": frame,
    "polars": lambda M: frame(M, "polars"),
}


def public_state(model):
    return {name for name in vars(model) if name.endswith("_")}


class TestScikitLearn:
    @pytest.mark.once_per_class
    def test_its_checks_pass(self, method):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # the checks fit data of rank one, disconnected data, ...
            outcomes = check_estimator(method.make(**few_steps(method)), on_fail=None, on_skip=None)
        failed = [(o["check_name"], o["exception"]) for o in outcomes if o["status"] == "failed"]
        skipped = {o["check_name"] for o in outcomes if o["status"] == "skipped"}
        assert not failed
        assert skipped <= {"check_array_api_input"}  # needs an environment variable of scipy
        assert len(outcomes) > 40

    def test_parameters_are_stored_as_they_are(self, method):
        model = method.make()
        signature = inspect.signature(type(model).__init__)
        assert set(vars(model)) == set(signature.parameters) - {"self"}

    def test_clone_starts_afresh(self, method, X):
        model = method.make(random_state=3).fit(method.input(X))
        copy = clone(model)
        assert str(copy.get_params()) == str(model.get_params())
        with pytest.raises(NotFittedError):
            copy.transform(method.input(X))
        assert np.array_equal(copy.fit_transform(method.input(X)), model.embedding_)

    def test_a_failed_fit_leaves_the_model_as_it_was(self, method, X):
        model = method.make().set_params(**{method.counted_by: 10_000})
        with pytest.raises(ValueError, match=f"{method.counted_by}=10000"):
            model.fit(method.input(X))
        with pytest.raises(NotFittedError):
            model.transform(method.input(X))
        assert not hasattr(model, "embedding_")
        model = method.make().fit(method.input(X))
        state = dict(vars(model))
        model.set_params(**{method.counted_by: 10_000})
        with pytest.raises(ValueError, match=f"{method.counted_by}=10000"):
            model.fit(method.input(X))
        model.set_params(**{method.counted_by: state[method.counted_by]})
        assert vars(model).keys() == state.keys()
        assert all(value is state[name] for name, value in vars(model).items())

    @pytest.mark.once_per_class
    @pytest.mark.parametrize("container", ["pandas", "polars"])
    def test_output_in_frames(self, method, fitted, X, X_new, container):
        plain = fitted(method)
        model = method.make().set_output(transform=container)
        Y = model.fit_transform(method.input(X))
        assert isinstance(Y, FRAMES[container])
        assert list(Y.columns) == list(model.get_feature_names_out())
        assert np.array_equal(Y.to_numpy(), plain.embedding_)
        placed = model.transform(method.between(X_new, X))
        assert isinstance(placed, FRAMES[container])
        assert np.array_equal(placed.to_numpy(), plain.transform(method.between(X_new, X)))

    @pytest.mark.once_per_class
    def test_pandas_output_keeps_the_index(self, data_method, X):
        rows = [f"row {i}" for i in range(len(X))]
        named = pd.DataFrame(X, index=rows)
        named.columns = named.columns.astype(str)
        Y = data_method.make().set_output(transform="pandas").fit_transform(named)
        assert list(Y.index) == rows

    @pytest.mark.once_per_class
    def test_names_of_coordinates(self, method, X):
        model = method.make(n_components=3).fit(method.input(X))
        name = type(model).__name__.lower()
        assert list(model.get_feature_names_out()) == [f"{name}{i}" for i in range(3)]

    @pytest.mark.once_per_class
    @pytest.mark.parametrize("kind", ["pandas", "polars"])
    def test_feature_names_are_checked(self, data_method, fitted, X, kind, same_up_to_sign):
        named = frame(X, kind)
        if not hasattr(StandardScaler().fit(named), "feature_names_in_"):
            pytest.skip("this scikit-learn cannot read the names of this polars")
        model = data_method.make().fit(named)
        assert list(model.feature_names_in_) == list(named.columns)
        # Columns of a frame are not contiguous in memory, so sums are rounded differently.
        tolerance = data_method.reproducibility if data_method.iterative else 1e-12
        same_up_to_sign(model.embedding_, fitted(data_method).embedding_, tolerance)
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(named[list(named.columns)[::-1]])
        with pytest.raises(ValueError, match=r"(?s)feature names.*missing"):
            model.transform(named[list(named.columns)[1:]])

    def test_every_attribute_is_documented_and_every_documented_one_there(self, method, fitted):
        model = fitted(method)
        documented = set().union(*(documented_attributes(cls) for cls in type(model).__mro__))
        scikit_learns_own = {"n_features_in_", "feature_names_in_"}
        assert public_state(model) - scikit_learns_own <= documented
        assert [name for name in documented if not hasattr(model, name)] == []

    @pytest.mark.once_per_class
    def test_pipeline_and_grid_search(self, data_method, X):
        pipeline = make_pipeline(data_method.make(), KNeighborsClassifier(3))
        step = pipeline.steps[0][0]
        search = GridSearchCV(
            pipeline, {f"{step}__{data_method.counted_by}": [1, 2]}, cv=3, error_score="raise"
        )
        search.fit(X, labels(X))
        assert search.predict(X).shape == (len(X),)
        assert search.best_score_ > 0.6  # chance is 0.5

    def test_cross_validation_slices_precomputed_matrices(self, matrix_method, X):
        M, y = matrix_method.input(X), labels(X)
        pipeline = make_pipeline(matrix_method.make(), KNeighborsClassifier(3))
        assert pipeline.__sklearn_tags__().input_tags.pairwise
        folds = KFold(3, shuffle=True, random_state=0)
        predicted = cross_val_predict(pipeline, M, y, cv=folds)
        train, test = next(folds.split(M))
        by_hand = clone(pipeline).fit(M[np.ix_(train, train)], y[train])
        assert np.array_equal(predicted[test], by_hand.predict(M[np.ix_(test, train)]))
        assert (predicted == y).mean() > 0.6


def few_steps(method):
    """Parameters of a short search, for the many fits of scikit-learn's checks."""
    if not method.iterative:
        return {}
    # The default starts of UKR are maps of three other estimators, which are checked themselves.
    return {"max_iter": 5, "init": "pca"} if "UKR" in method.id else {"max_iter": 5}


def documented_attributes(cls):
    section = re.search(r"\n\s*Attributes\n\s*-+\n(.*?)(\n\s*\n|\Z)", cls.__doc__ or "", re.S)
    lines = section.group(1).splitlines() if section else []
    names = [line.split(" : ")[0].split(", ") for line in lines if re.match(r"\s*\w+_(,| :)", line)]
    return {name.strip() for line in names for name in line}


def public_estimators():
    found = (name for name in mf.__all__ if isinstance(getattr(mf, name), type))
    return [name for name in found if issubclass(getattr(mf, name), BaseEstimator)]


def versions_warned(saved):
    """The estimators named by the version warnings of a loading."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pickle.loads(saved)
    return [re.match(r"this (\w+) was saved by manifoldry 0", str(w.message))[1] for w in seen]


class TestState:
    def test_pickles_transform_alike(self, method, X, X_new):
        model = method.make().fit(method.input(X))
        again = pickle.loads(pickle.dumps(model))
        new = method.between(X_new, X)
        assert np.array_equal(again.embedding_, model.embedding_)
        assert np.array_equal(again.transform(new), model.transform(new))

    @pytest.mark.once_per_class
    def test_pickles_say_which_version_wrote_them(self, method, fitted, monkeypatch):
        saved = pickle.dumps(fitted(method))
        monkeypatch.setattr(mf, "__version__", "99.0")
        name = type(fitted(method)).__name__
        with pytest.warns(VersionWarning, match=rf"{name} was saved by manifoldry 0\..* by 99\.0"):
            again = pickle.loads(saved)
        assert np.array_equal(again.embedding_, fitted(method).embedding_)
        assert not any("version" in name for name in vars(again))

    @pytest.mark.parametrize("name", public_estimators())
    def test_one_warning_for_an_estimator_and_those_inside_it(self, name, monkeypatch):
        saved = pickle.dumps(getattr(mf, name)())
        pickle.loads(saved)
        monkeypatch.setattr(mf, "__version__", "99.0")
        for _ in range(2):  # in each loading
            assert versions_warned(saved) == [getattr(mf, name).__name__]

    def test_one_warning_for_a_fitted_wrapper(self, X, monkeypatch):
        model = mf.ConformalInverse(mf.NonRedundant(mf.LaplacianEigenmaps(2, n_neighbors=8)))
        saved = pickle.dumps(make_pipeline(model).fit(X))
        with monkeypatch.context() as patch:
            patch.setattr(mf, "__version__", "99.0")
            assert versions_warned(saved) == ["ConformalInverse"]
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(VersionWarning):
                    pickle.loads(saved)
            assert versions_warned(saved) == ["ConformalInverse"]
        again = pickle.loads(saved)[0]
        assert np.array_equal(again.transform(X), model.transform(X))

    def test_a_state_without_version(self):
        with pytest.warns(VersionWarning, match="PCA was saved by an unknown version of"):
            mf.PCA().__setstate__({"n_components": 2})

    def test_pickles_of_used_models(self, data_method, fitted, X, X_new):
        model = fitted(data_method)
        there = model.transform(X_new)
        back = model.inverse_transform(there)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.transform(X_new), there)
        assert np.array_equal(again.inverse_transform(there), back)

    def test_using_a_model_does_not_change_its_pickle(self, method, X, X_new):
        model = method.make().fit(method.input(X))
        before = pickle.dumps(model)
        with suppress(ValueError):  # it is unknown for some kernels
            model.novelty(method.between(X_new, X))
        placed = model.transform(method.between(X_new, X))
        assert pickle.dumps(model) == before
        if method.takes == "data":
            model.inverse_transform(placed, return_distance=True)
            assert pickle.dumps(model) == before

    def test_models_grow_with_points_not_with_pairs(self, method, make_cloud):
        if method.keeps_pairs:
            pytest.skip("keeps a fraction of all pairs, and says so")

        def size(n):
            X = make_cloud(n)
            model = method.make().fit(method.input(X))
            model.transform(method.between(X[:3] + 0.01, X))
            if method.takes == "data":
                model.inverse_transform(model.embedding_[:3])
            return len(pickle.dumps(model))

        assert size(320) < 5 * size(80)  # with a matrix of pairs it would be 16 times

    def test_refitting_leaves_nothing_of_the_first_fit(self, method, all_methods, make_cloud):
        kin = [m for m in all_methods if type(m.make()) is type(method.make())]
        X = make_cloud(50, seed=2)[:, :4]
        fresh = method.make().fit(method.input(X))
        for other in kin:
            first = frame(make_cloud()) if other.takes == "data" else other.input(make_cloud())
            model = other.make(n_components=3).fit(first)
            model.set_params(**method.make().get_params()).fit(method.input(X))
            assert set(vars(model)) == set(vars(fresh)), f"after {other}"
            assert np.array_equal(model.embedding_, fresh.embedding_)
            assert len(pickle.dumps(model)) == len(pickle.dumps(fresh))

    def test_fit_changes_no_parameter(self, method, X):
        model = method.make(random_state=1)
        before = {name: repr(value) for name, value in model.get_params().items()}
        model.fit(method.input(X))
        assert {name: repr(value) for name, value in model.get_params().items()} == before

    def test_input_is_never_modified(self, method, X, X_new):
        training, new = method.input(X).copy(), method.between(X_new, X).copy()
        kept = training.copy(), new.copy()
        model = method.make().fit(training)
        Z = model.transform(new)
        before = Z.copy()
        if method.takes == "data":
            model.inverse_transform(Z)
        assert np.array_equal(training, kept[0])
        assert np.array_equal(new, kept[1])
        assert np.array_equal(Z, before)

    def test_read_only_input(self, method, fitted, X, X_new):
        training, new = method.input(X).copy(), method.between(X_new, X).copy()
        training.flags.writeable = new.flags.writeable = False
        model = method.make().fit(training)
        plain = fitted(method)
        assert np.array_equal(model.embedding_, plain.embedding_)
        assert np.array_equal(model.transform(new), plain.transform(new.copy()))

    @pytest.mark.once_per_class
    def test_the_layout_in_memory_changes_no_bit(self, method, fitted, X, X_new):
        training, new = method.input(X), method.between(X_new, X)
        plain = fitted(method)
        placed = plain.transform(new)
        for name, copy in LAYOUTS.items():
            model = method.make().fit(copy(training))
            assert np.array_equal(model.embedding_, plain.embedding_), name
            assert np.array_equal(np.asarray(model.transform(copy(new))), placed), name

    def test_read_only_memory_map(self, method, fitted, X, X_new, tmp_path):
        np.save(tmp_path / "X.npy", method.input(X))
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        new = method.between(X_new, X)
        model, plain = method.make().fit(mapped), fitted(method)
        assert np.array_equal(model.embedding_, plain.embedding_)
        assert np.array_equal(model.transform(new), plain.transform(new))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_overwriting_the_data_later_changes_nothing(self, method, fitted, X, X_new, dtype):
        training = method.input(X).astype(dtype)
        new = method.between(X_new, X).astype(dtype)
        model = method.make().fit(training)
        kept = model.embedding_.copy()
        placed = model.transform(new)
        training[:] = 7
        assert np.array_equal(model.embedding_, kept)
        assert np.array_equal(model.transform(new), placed)
        if method.takes == "data":
            assert np.array_equal(
                model.inverse_transform(placed), fitted(method, dtype).inverse_transform(placed)
            )

    def test_overwriting_the_result_changes_nothing(self, method, X):
        model = method.make()
        Y = model.fit_transform(method.input(X))
        kept = Y.copy()
        Y[:] = 0
        assert np.array_equal(model.embedding_, kept)

    def test_float32_stays_float32(self, method, X, X_new, same_up_to_sign):
        training = method.input(X).astype(np.float32)
        new = method.between(X_new, X).astype(np.float32)
        # A spectral start has the precision of the data, and the iterates differ from there.
        given = method.starting_at(X[:, :2] / X.std()) if method.iterative else {}
        single = method.make(**given).fit(training)
        double = method.make(**given).fit(training.astype(np.float64))
        assert single.embedding_.dtype == np.float32
        assert method.make().fit_transform(training).dtype == np.float32
        assert single.transform(new).dtype == np.float32
        assert single.transform(new.astype(np.float64)).dtype == np.float64
        same_up_to_sign(single.embedding_, double.embedding_, 1e-5)
        same_up_to_sign(single.transform(new), double.transform(new), 1e-5)


class TestTransform:
    def test_rows_do_not_depend_on_their_companions(self, method, fitted, X, X_new):
        model = fitted(method)
        rows = method.between(np.vstack([X_new, X[::7]]), X)
        together = model.transform(rows)
        one_by_one = np.vstack([model.transform(rows[[i]]) for i in range(len(rows))])
        order = np.random.default_rng(0).permutation(len(rows))
        size = np.abs(together).max()
        assert np.abs(one_by_one - together).max() <= 1e-7 * size
        assert np.abs(model.transform(rows[order]) - together[order]).max() <= 1e-7 * size

    def test_sparse_rows_are_placed_as_dense_ones(self, data_method, X, X_new):
        """Far from the origin, which is not subtracted from sparse data."""
        model = data_method.make().fit(X + 50)
        dense, sparse = X_new + 50, csr_array(X_new + 50)
        size = np.abs(model.embedding_).max()
        assert np.abs(model.transform(dense) - model.transform(sparse)).max() <= 1e-9 * size
        assert model.score(dense) == pytest.approx(model.score(sparse), abs=1e-9)

    def test_training_rows_get_their_coordinates(self, method, fitted, X):
        training = method.input(X)
        model = fitted(method)
        if method.finds_training_rows:
            assert np.array_equal(model.transform(training), model.embedding_)
            assert np.array_equal(model.transform(training[5:9]), model.embedding_[5:9])
        else:
            error = np.abs(model.transform(training[5:9]) - model.embedding_[5:9]).max()
            assert error <= 1e-13 * np.abs(model.embedding_).max()

    @pytest.mark.once_per_class
    @pytest.mark.parametrize("whole_numbers", [True, False])
    def test_training_rows_of_whole_numbers(self, data_method, whole_numbers):
        """Rows of small integers, whose bit patterns differ little, are distinguished."""
        X = np.random.default_rng(0).integers(0, 3, size=(300, 12)).astype(float)
        X = np.unique(X, axis=0) + (0.0 if whole_numbers else 0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = data_method.make().fit(X)
        assert np.allclose(
            model.transform(X), model.embedding_, rtol=0, atol=1e-13 * np.abs(X).max()
        )

    def test_the_extension_formula_is_exact(self, method, fitted, X):
        training = method.input(X)
        model = fitted(method)
        assert model.extension_error(training) <= method.extension_error
        rough = model.extension_.transform(training)
        assert (
            np.abs(rough - model.embedding_).max()
            <= 2 * method.extension_error * np.abs(model.embedding_).max()
        )

    def test_extension_error_needs_all_training_rows(self, method, fitted, X):
        training = method.input(X)
        with pytest.raises(ValueError, match=r"X has 4 rows, but the training data have 60"):
            fitted(method).extension_error(training[:4])

    def test_transform_is_continuous_between_training_points(self, data_method, fitted, X):
        """The midpoint of two nearest neighbors is mapped between their images."""
        model = fitted(data_method)
        D = np.linalg.norm(X[:, None] - X[None], axis=2) + np.diag(np.full(len(X), np.inf))
        near = D.argmin(axis=1)
        placed = model.transform((X + X[near]) / 2)
        ends = np.stack([model.embedding_, model.embedding_[near]])
        spread = model.embedding_.std(axis=0)
        outside = np.maximum(ends.min(axis=0) - placed, placed - ends.max(axis=0)) / spread
        assert np.median(outside) < 0.35


class TestInverse:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_shape_and_type(self, data_method, fitted, X, X_new, dtype):
        model = fitted(data_method, dtype)
        Z = model.transform(X_new.astype(dtype))
        back = model.inverse_transform(Z)
        assert back.shape == X_new.shape
        assert back.dtype == dtype
        assert np.isfinite(back).all()

    def test_wrong_columns(self, method, fitted):
        model = fitted(method)
        with pytest.raises(ValueError, match=r"X has 3 columns, .* has n_components=2"):
            model.inverse_transform(np.zeros((4, 3)))
        with pytest.raises(ValueError, match="NaN"):
            model.inverse_transform(np.array([[np.nan, 0.0]]))

    def test_precomputed_values_have_no_inverse(self, matrix_method, fitted):
        model = fitted(matrix_method)
        with pytest.raises(ValueError, match=r"fitted on precomputed values.*fit it on the data"):
            model.inverse_transform(model.embedding_)

    def test_is_closer_than_the_mean(self, data_method, X):
        model = data_method.make(n_components=4).fit(X)
        back = model.inverse_transform(model.embedding_)
        assert np.square(back - X).sum() < 0.8 * np.square(X - X.mean(axis=0)).sum()

    def test_distance_from_the_data(self, data_method, fitted):
        model = fitted(data_method)
        Y = model.embedding_
        _, inside = model.inverse_transform(Y, return_distance=True)
        assert inside.shape == (len(Y),)
        assert 0.4 < np.median(inside) < 1.6
        far = Y.mean(axis=0) + 30 * np.ptp(Y, axis=0)
        _, outside = model.inverse_transform(far[None], return_distance=True)
        assert outside[0] > 20
        rows = model.inverse_transform(np.vstack([far, Y]), return_distance=True)[1]
        assert np.allclose(rows[1:], inside, rtol=1e-7)

    def test_positions_off_the_map_are_reported(self, data_method, fitted, recwarn):
        model = fitted(data_method)
        Y = model.embedding_
        model.inverse_transform(Y)
        model.inverse_transform(Y[:1])
        assert not [w for w in recwarn if w.category is NoveltyWarning]
        far = Y[:15] + 30 * np.ptp(Y, axis=0)
        for distance in (False, True):
            with pytest.warns(NoveltyWarning, match="15 of 15 positions are off the map"):
                model.inverse_transform(far, return_distance=distance)

    def test_rows_do_not_depend_on_their_companions(self, data_method, fitted, X_new):
        model = fitted(data_method)
        Z = model.transform(X_new)
        together = model.inverse_transform(Z)
        one_by_one = np.vstack([model.inverse_transform(z[None]) for z in Z])
        assert np.abs(one_by_one - together).max() <= 1e-7 * np.abs(together).max()


class TestNovelty:
    """The distance of rows from the training data, and the warning of ``transform``."""

    def test_comes_with_the_place(self, measured_method, fitted, X, X_new):
        model, new = fitted(measured_method), measured_method.between(X_new, X)
        placed, distance = model.transform(new, return_distance=True)
        assert np.array_equal(placed, model.transform(new))
        assert np.array_equal(distance, model.novelty(new))
        assert distance.shape == (len(X_new),)

    def test_does_not_depend_on_the_method(self, measured_method, fitted, all_methods, X, X_new):
        euclidean = fitted(next(m for m in all_methods if m.id == "PCA")).novelty(X_new)
        found = fitted(measured_method).novelty(measured_method.between(X_new, X))
        if getattr(measured_method.make(), "metric", "euclidean") != "cityblock":
            assert np.allclose(found, euclidean, rtol=1e-7)

    def test_training_rows_are_near(self, measured_method, fitted, X):
        found = fitted(measured_method).novelty(measured_method.input(X))
        assert np.median(found) < 1
        assert (found > 2).mean() <= 0.02

    def test_rows_do_not_depend_on_their_companions(self, measured_method, fitted, X, X_new):
        model, new = (
            fitted(measured_method),
            measured_method.between(np.vstack([X_new, 9 * X_new]), X),
        )
        one_by_one = np.concatenate([model.novelty(row[None]) for row in new])
        assert np.allclose(one_by_one, model.novelty(new), rtol=1e-7)

    def test_single_precision(self, measured_method, fitted, X, X_new):
        new = measured_method.between(X_new, X)
        single = fitted(measured_method, np.float32).novelty(new.astype(np.float32))
        assert np.allclose(single, fitted(measured_method).novelty(new), rtol=1e-3)

    def test_far_rows_are_reported(self, measured_method, fitted, X, X_new, recwarn):
        model = fitted(measured_method)
        model.transform(measured_method.between(X_new, X))
        assert not [w for w in recwarn if w.category is NoveltyWarning]
        far = measured_method.between(X_new + 20, X)
        assert (model.novelty(far) > 2).all()
        warned = pytest.warns(NoveltyWarning, match="15 of 15 rows are unlike the data")
        with warned, suppress(ValueError):  # a graph by radius cannot place them at all
            model.transform(far)

    def test_is_unknown_without_distances(self, unmeasured_method, fitted, X, X_new, recwarn):
        model, new = fitted(unmeasured_method), unmeasured_method.between(X_new, X)
        remedy = r"novelty is unknown: .*(precomputed values; fit it on the data|kernel='rbf')"
        with pytest.raises(ValueError, match=remedy):
            model.novelty(new)
        with pytest.raises(ValueError, match=remedy):
            model.transform(new, return_distance=True)
        model.transform(new + 1)
        assert not [w for w in recwarn if w.category is NoveltyWarning]


class TestScore:
    """The score: R² of the reconstruction."""

    def test_is_the_r2_of_the_reconstruction(self, data_method, fitted, X_new):
        model = fitted(data_method)
        back = model.inverse_transform(model.transform(X_new))
        expected = r2_score(X_new, back, multioutput="variance_weighted")
        assert model.score(X_new) == pytest.approx(expected)
        found = reconstruction(model, X_new)
        assert found.low < found < found.high

    def test_precomputed_values_have_none(self, matrix_method):
        assert not hasattr(matrix_method.make(), "score")


class TestSearch:
    def test_same_bits_twice(self, iterative_method, make_cloud):
        M = iterative_method.input(make_cloud(120))
        for init in ("spectral", "random"):
            first, second = (
                iterative_method.make(random_state=5, **iterative_method.starting_at(init)).fit(M)
                for _ in range(2)
            )
            assert np.array_equal(first.embedding_, second.embedding_)
            assert first.trace_.tobytes() == second.trace_.tobytes()

    def test_order_of_rows_does_not_matter(self, iterative_method, X, X_new, same_up_to_sign):
        """With the same init; the noise of the default init depends on the order of rows."""
        method, order = iterative_method, np.random.default_rng(3).permutation(len(X))
        if method.unfolds:
            pytest.skip("additional coordinates are drawn row by row; the maximum is the same")
        start = np.random.default_rng(4).standard_normal((len(X), 2))
        model = method.make(init=start).fit(method.input(X))
        shuffled = method.make(init=start[order]).fit(method.input(X[order]))
        same_up_to_sign(shuffled.embedding_, model.embedding_[order], method.reproducibility)
        placed = shuffled.transform(method.between(X_new, X[order]))
        expected = model.transform(method.between(X_new, X))
        same_up_to_sign(placed, expected, 100 * method.reproducibility)

    def test_evidence(self, iterative_method, fitted):
        model = fitted(iterative_method)
        trace = model.trace_
        assert model.n_iter_ == trace["iteration"][-1]
        assert model.n_evaluations_ == trace["evaluations"][-1]
        assert (np.diff(trace["iteration"]) >= 0).all()
        assert (np.diff(trace["evaluations"]) >= 0).all()
        if iterative_method.unfolds:  # values of the outer iterations
            assert model.loss_ == -model.variance_
        elif "UKR" not in iterative_method.id:
            assert np.isclose(model.loss_, trace["value"][-1], rtol=1e-9)
        assert model.status_
        assert isinstance(model.converged_, bool)


class TestEigenproblem:
    def test_same_bits_twice(self, spectral_method, make_cloud):
        method = spectral_method
        M = method.input(make_cloud(120))
        for solver in ("auto", "lanczos"):
            first, second = (
                method.make(eigen_solver=solver, random_state=5).fit(M) for _ in range(2)
            )
            assert np.array_equal(first.embedding_, second.embedding_)
            assert np.array_equal(first.eigenvalues_, second.eigenvalues_)

    def test_order_of_rows_does_not_matter(
        self, spectral_method, fitted, X, X_new, same_up_to_sign
    ):
        method = spectral_method
        if method.id == "Isomap-landmarks":
            pytest.skip("the first landmark is drawn by its number")
        order = np.random.default_rng(3).permutation(len(X))
        model, shuffled = fitted(method), method.make().fit(method.input(X[order]))
        same_up_to_sign(shuffled.embedding_, model.embedding_[order], 1e-8)
        assert np.allclose(shuffled.eigenvalues_, model.eigenvalues_, rtol=1e-9)
        placed = shuffled.transform(method.between(X_new, X[order]))
        same_up_to_sign(placed, model.transform(method.between(X_new, X)), 1e-8)

    def test_more_components_keep_the_first(self, spectral_method, X, same_up_to_sign):
        method = spectral_method
        if method.on_sheet or method.mixed:
            pytest.skip("another number of coordinates is another problem")
        if method.id == "SpectralClustering":
            pytest.skip("rows have unit length over all coordinates, however many there are")
        two, four = (method.make(n_components=k).fit(method.input(X)) for k in (2, 4))
        same_up_to_sign(four.embedding_[:, :2], two.embedding_, 1e-8)
        assert np.allclose(four.eigenvalues_[:2], two.eigenvalues_, rtol=1e-9)

    @pytest.mark.once_per_class
    @pytest.mark.parametrize("solver", SOLVERS)
    def test_solvers_agree(self, spectral_method, make_cloud, solver):
        method = spectral_method
        M = method.input(make_cloud(250))
        if method.linear and solver == "shift_invert":
            with pytest.raises(RuntimeError, match='pass eigen_solver="lanczos"'):
                method.make(eigen_solver=solver).fit(M)
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model = method.make(eigen_solver=solver, n_components=3, random_state=0)
            model.fit(M)
        if any(issubclass(w.category, ConvergenceWarning) for w in caught):
            # Matrix products do not resolve the tiny gaps of squared operators; it warned.
            assert method.id.startswith("LLE")
            assert solver == "randomized" or method.one_by_one
            return
        reference = method.make(eigen_solver="dense", n_components=3).fit(M)
        angles = subspace_angles(model.embedding_, reference.embedding_)
        assert angles.max() < 1e-5
        assert np.allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-6)
        assert model.solver_.split(":")[0].lower().startswith(solver.split("_")[0])

    def test_evidence(self, spectral_method, make_cloud):
        method = spectral_method
        model = method.make(n_components=3).fit(method.input(make_cloud(120)))
        if method.mixed:
            assert 0 <= model.bound_ <= model.loss_
            assert model.certificate_ <= 1e-9
            assert model.converged_
            model = model.basis_.set_params(n_components=3).fit(make_cloud(120))
        assert model.residuals_.shape == model.gaps_.shape == model.eigenvalues_.shape == (3,)
        assert (model.residuals_ <= 1e-3 * model.gaps_).all()
        computed = model.computed_eigenvalues_
        assert np.array_equal(computed[:3], model.eigenvalues_)
        if method.one_by_one:
            assert "accepted" in model.solver_
            return  # each coordinate has its own spectrum
        assert len(computed) > 3
        steps = np.abs(np.subtract.outer(model.eigenvalues_, computed))
        steps[steps == 0] = np.inf
        assert np.allclose(model.gaps_, steps.min(axis=1), rtol=1e-6)
        assert 1 <= model.dimension_hint_ < len(computed)
        assert "accepted" in model.solver_
        assert model.loss_ >= 0


class TestConcurrency:
    @pytest.mark.representatives
    def test_threads(self, method, make_cloud):
        inputs = [method.input(make_cloud(80, seed=i)) for i in range(4)]
        serial = [method.make().fit(M).embedding_ for M in inputs]
        with ThreadPoolExecutor(4) as pool:
            parallel = list(pool.map(lambda M: method.make().fit(M).embedding_, inputs))
        assert all(map(np.array_equal, serial, parallel))

    def test_threads_share_a_model(self, method, X, X_new):
        model = method.make().fit(method.input(X))
        new = method.between(X_new, X)
        reference = pickle.loads(pickle.dumps(model)).transform(new)
        with ThreadPoolExecutor(4) as pool:
            placed = list(pool.map(lambda _: model.transform(new), range(8)))
        assert all(np.array_equal(Y, reference) for Y in placed)

    def test_processes(self, all_methods, fitted, X):
        models = joblib.Parallel(n_jobs=2)(
            joblib.delayed(_fit)(m.make(), m.input(X)) for m in all_methods
        )
        for method, model in zip(all_methods, models, strict=True):
            assert np.array_equal(model.embedding_, fitted(method).embedding_), method


def _fit(model, X):
    return model.fit(X)


def test_a_failed_fit_leaves_nothing_behind(method, X):
    model = method.make().set_params(**method.refused)
    before = set(vars(model))
    with pytest.raises(
        ValueError, match=r"(eigen_solver|optimizer|constraint)='best' must be one of"
    ):
        model.fit(method.input(X))
    assert set(vars(model)) == before
