"""Every estimator on a device: the same results as on the CPU, and arrays that are there."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone

import manifoldry as mf
from manifoldry import metrics
from manifoldry.device import current_device, using_device
from manifoldry.device.emulated import COPIES, EmulatedArray, EmulatedDevice
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.iterative.ukr_floor import Floor
from manifoldry.objectives import Bifurcation, FFTInterpolation, GaussianKernel
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.optimize import LBFGS, Heat

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def on_device(method, device):
    return method.make(device=device)


def on_the_cpu(model):
    """A copy of a fitted model that computes on the CPU."""
    copy = pickle.loads(pickle.dumps(model))
    name = "device" if "device" in copy.get_params() else "estimator__device"
    return copy.set_params(**{name: "cpu"})


def searches_on_device(method):
    """Whether the map is the end of a search that runs on the device."""
    return method.iterative and not method.unfolds


def tolerance(method):
    """Eigenvectors differ by rounding."""
    return max(1e-5, 100 * method.reproducibility)


def value_at(model, X):
    """The objective of an iterative method at its embedding, on the CPU and for all pairs."""
    if not isinstance(model, mf.UKR):
        return model.objective_.value(model.embedding_)
    error = UKRObjective(X - X.mean(axis=0), None, model.kernel, model.leave_one_out)
    floor = Floor.default(len(X), 2, error.variance, model.kernel)
    return floor.add_penalty(error).value(model.embedding_)


class Uploads(EmulatedDevice):
    """Remembers the shapes of what is copied to it."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def _upload(self, host):
        self.shapes.append(host.shape)
        return super()._upload(host)


class TestResults:
    @pytest.mark.once_per_class
    def test_those_of_the_cpu(
        self, method, device, fitted, X, X_new, same_up_to_sign, assert_searched_alike
    ):
        """Maps are equal, those of searches equally good; new points of one model are equal."""
        reference, tol = fitted(method), tolerance(method)
        model = on_device(method, device).fit(method.input(X))
        assert type(model.embedding_) is np.ndarray
        if searches_on_device(method):
            assert model.loss_ == pytest.approx(value_at(model, X), rel=1e-5)
            assert_searched_alike(model, reference, never_up=not isinstance(model, mf.TSNE))
        else:
            same_up_to_sign(model.embedding_, reference.embedding_, tol)
        new, copy = method.between(X_new, X), on_the_cpu(model)
        Z, expected = model.transform(new), copy.transform(new)
        size = np.abs(expected).max()
        away = np.abs(Z - expected).max(axis=1)
        # A new point may have two equally good places, between which rounding decides.
        assert (away <= 10 * tol * size).mean() >= (0.9 if method.iterative else 1.0)
        if model.inverse_ is not None:
            back = model.inverse_transform(expected) - copy.inverse_transform(expected)
            assert np.abs(back).max() < 100 * tol * np.abs(X).max()

    @pytest.mark.representatives
    def test_the_same_bits_every_time(self, method, device, X):
        first, second = (on_device(method, device).fit(method.input(X)) for _ in range(2))
        np.testing.assert_array_equal(first.embedding_, second.embedding_)

    @pytest.mark.representatives
    def test_concurrent_fits_on_one_device(self, method, device, X):
        alone = on_device(method, device).fit(method.input(X)).embedding_
        with ThreadPoolExecutor(4) as pool:
            models = pool.map(lambda _: on_device(method, device).fit(method.input(X)), range(4))
            for model in models:
                np.testing.assert_array_equal(model.embedding_, alone)
        assert current_device() is None


class TestParameter:
    def test_clone_and_pickle(self, method, emulated, X):
        model = on_device(method, emulated)
        copy = clone(model)
        assert all(m.get_params() for m in (model, copy))
        inner = getattr(copy, "estimator", copy)
        assert inner.device is emulated
        loaded = pickle.loads(pickle.dumps(model))
        assert isinstance(getattr(loaded, "estimator", loaded).device, EmulatedDevice)

    def test_by_name_without_a_gpu(self, method):
        """A model with device="cuda" is made, cloned and pickled anywhere; fit needs the GPU."""
        model = pickle.loads(pickle.dumps(clone(on_device(method, "cuda"))))
        assert getattr(model, "estimator", model).device == "cuda"
        assert "device='cuda'" in repr(model)

    def test_a_failed_fit_leaves_the_context(self, method, emulated, X):
        bad = np.array(method.input(X))
        bad[3] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            on_device(method, emulated).fit(bad)
        assert current_device() is None
        assert not hasattr(on_device(method, emulated), "embedding_")

    def test_names_that_are_none(self):
        for name in ("tpu", "cuda:", "cuda:x", "gpu", 0):
            with pytest.raises(ValueError, match=r"must be 'cpu', 'cuda', or 'cuda:N'"):
                mf.PCA(device=name).fit(np.eye(4))

    def test_the_cpu_inside_a_context(self, emulated, X):
        COPIES.clear()
        with using_device(emulated):
            mf.LaplacianEigenmaps(device="cpu").fit(X)
            assert not COPIES
            inside = mf.LaplacianEigenmaps().fit(X)
        assert COPIES
        assert inside.neighbor_search_.endswith("on emulated")

    def test_the_device_of_a_wrapped_estimator(self, emulated, X):
        base = mf.LaplacianEigenmaps(device=emulated)
        for model in (mf.NonRedundant(base), mf.ConformalInverse(base), mf.FromDensity(base)):
            COPIES.clear()
            model.fit(X)
            assert COPIES["to device"]

    def test_a_missing_gpu_is_named_with_the_remedy(self, X):
        with pytest.raises(RuntimeError, match=r"device='cuda.*set_params\(device=None\)"):
            mf.PCA(device="cuda:99").fit(X)

    def test_model_files_have_its_name(self, emulated, X, tmp_path):
        model = mf.LaplacianEigenmaps(device=emulated).fit(X)
        loaded = mf.load(mf.save(model, tmp_path / "map.model"))
        assert loaded.device == "emulated"
        with pytest.raises(ValueError, match="device='emulated' must be"):
            loaded.transform(X)
        np.testing.assert_array_equal(loaded.set_params(device=None).transform(X), model.embedding_)

    def test_models_of_earlier_versions_have_the_default(self, X):
        model = mf.LaplacianEigenmaps().fit(X)
        del model.device
        assert pickle.loads(pickle.dumps(model)).get_params()["device"] is None


def positions(X):
    Y = X[:, :2]
    return FFTInterpolation().at_positions(GaussianKernel(), Y).at(Y + 0.1)


# What runs on the CPU, and a function that does it.
ON_THE_CPU = {
    "short circuits": ("the search for short circuits", mf.Isomap().fit),
    "few paths": (
        "the search for shortest paths",
        lambda X: mf.dimension.residual_variance_elbow(X),
    ),
    "new points": (
        "the search for paths of new points",
        lambda X: mf.Isomap().fit(X).transform(X + 0.1),
    ),
    "metric": ("the neighbor search", mf.LaplacianEigenmaps(metric="manhattan").fit),
    "precomputed": (
        "the neighbor search",
        lambda X: mf.LaplacianEigenmaps(metric="precomputed").fit(cdist(X, X)),
    ),
    "sparse": ("the neighbor search", lambda X: mf.LaplacianEigenmaps().fit(sparse.csr_array(X))),
    "kernel": ("the kernel of all pairs of points", mf.KernelPCA(kernel="poly").fit),
    "new points of a kernel": (
        "the Gaussian kernel of all pairs of points",
        lambda X: mf.KernelPCA().fit(X).transform(X + 0.1),
    ),
    "distances": ("the distances of all pairs of points", mf.ClassicalMDS(metric="manhattan").fit),
    "clusters": ("the search for clusters", mf.SpectralClustering(3).fit),
    "homotopy": (
        "the critical weight of the repulsion",
        lambda X: Bifurcation.of(
            mf.ElasticEmbedding(weight=1.0, repulsion="squared_distance", max_iter=2)
            .fit(X)
            .objective_
        ),
    ),
    "guidance": (
        "spectral guidance",
        mf.SymmetricSNE(init="pca", max_iter=3, optimizer=LBFGS(Heat())).fit,
    ),
    "positions": ("interpolation at new positions", positions),
    "refits": (
        "refits",
        lambda X: metrics.stability(mf.PCA(2), X, n_resamples=2, n_jobs=2),
    ),
    "comparison": (
        "the comparison of all pairs",
        lambda X: metrics.trustworthiness(X, X[:, :2], metric="manhattan"),
    ),
}


class TestWarnings:
    @pytest.mark.parametrize(
        "make", [mf.MVU, mf.ConformalEigenmaps, mf.ManifoldParzen], ids=lambda c: c.__name__
    )
    def test_what_runs_on_the_cpu_is_said_once(self, make, emulated, X):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            make(device=emulated).fit(X)
        said = [str(each.message) for each in seen if "runs on the CPU" in str(each.message)]
        assert len(said) == 1, said
        assert said[0].startswith(f"{make.__name__.replace('MVU', 'MaximumVarianceUnfolding')} ")

    @pytest.mark.parametrize("name", ON_THE_CPU)
    def test_a_stage_on_the_cpu_is_said_once(self, name, emulated, X, monkeypatch):
        monkeypatch.setattr("manifoldry.device.base.NOTICED_ABOVE", 0)  # also of few points
        what, work = ON_THE_CPU[name]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with using_device(emulated):
                work(X)
        said = [
            str(each.message) for each in seen if f"{what} runs on the CPU" in str(each.message)
        ]
        assert len(said) == 1, said

    def test_little_work_is_not_mentioned(self, emulated, X):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ManifoldryWarning)
            mf.SpectralClustering(3, device=emulated).fit(X)
            mf.KernelPCA(kernel="poly", device=emulated).fit(X).transform(X)
            mf.LaplacianEigenmaps(metric="precomputed", device=emulated).fit(cdist(X, X))

    def test_also_of_estimators_without_the_parameter(self, emulated, X):
        with using_device(emulated):
            for model in (mf.MixtureOfFactorAnalyzers(), mf.LieTransform(n_generators=1)):
                Y, upper = X[:, :3], 0.1 * np.triu(np.ones((3, 3)), 1)
                turned = Y @ (np.eye(3) + upper - upper.T)
                with pytest.warns(ManifoldryWarning, match="runs on the CPU, not on emulated"):
                    model.fit(Y, turned)


class TestMemory:
    def test_a_plan_that_does_not_fit(self, X):
        small = EmulatedDevice(free_memory=100)
        with using_device(small), pytest.raises(MemoryError, match="fewer rows") as raised:
            small.plan(200, "a matrix", "pass fewer rows")
        assert "emulated" in str(raised.value)

    def test_an_allocation_that_fails(self, X):
        class Full(EmulatedDevice):
            def _upload(self, host):
                raise MemoryError("cannot allocate 8 bytes")

            def lacks_memory(self, error):
                return type(error) is MemoryError

        with pytest.raises(MemoryError, match=r"16\.0 GiB that are free.*device='cpu'"):
            mf.LaplacianEigenmaps(device=Full()).fit(X)
        assert current_device() is None


class TestArraysOnADevice:
    @pytest.mark.representatives
    def test_results_are_of_the_same_kind(
        self, method, device, fitted, X, X_new, same_up_to_sign, assert_searched_alike
    ):
        there = device.array(method.input(X))
        model = method.make().fit(there)
        assert type(model.embedding_) is np.ndarray
        reference = fitted(method)
        if searches_on_device(method):
            assert_searched_alike(model, reference, never_up=not isinstance(model, mf.TSNE))
        else:
            same_up_to_sign(model.embedding_, reference.embedding_, tolerance(method))
        Z = model.transform(device.array(method.between(X_new, X)))
        assert device.owns(Z)
        if model.inverse_ is not None:
            assert device.owns(model.inverse_transform(Z))
        pickle.loads(pickle.dumps(model)).transform(method.between(X_new, X))
        assert current_device() is None

    def test_all_methods_of_an_estimator(self, device, X):
        there = device.array(X.astype(np.float32))
        model = mf.LaplacianEigenmaps().fit(there)
        assert model.embedding_.dtype == np.float32
        Y = mf.LaplacianEigenmaps().fit_transform(there)
        assert device.owns(Y)
        assert device.owns(model.novelty(there))
        Z, distances = model.transform(there, return_distance=True)
        assert device.owns(Z)
        assert device.owns(distances)
        assert isinstance(model.score(there), float)
        assert model.extension_error(there) < 1e-3
        assert device.owns(mf.SpectralClustering(3).fit(there).predict(there))
        assert device.owns(mf.NonRedundant().fit_transform(there))
        conformal = mf.ConformalInverse().fit(there)
        assert all(map(device.owns, conformal.inverse_with_radius(conformal.transform(there))))

    def test_they_are_not_copied_back(self, X):
        device = Uploads()
        wide = np.random.default_rng(0).normal(size=(300, 300))
        there = device.array(wide)
        device.shapes.clear()
        mf.LaplacianEigenmaps().fit(there)
        assert (300, 300) not in device.shapes

    def test_the_model_has_a_copy(self, emulated, X):
        there = emulated.array(X)
        model = mf.LaplacianEigenmaps().fit(there)
        before = model.transform(X + 0.01)
        there[:] = 0
        np.testing.assert_array_equal(model.transform(X + 0.01), before)

    def test_data_frames_are_made_of_arrays_of_numpy(self, device, X):
        model = mf.LaplacianEigenmaps().set_output(transform="pandas").fit(device.array(X))
        assert model.transform(device.array(X)).shape == (60, 2)

    def test_another_device_is_an_error(self, emulated, X):
        there = emulated.array(X)
        with pytest.raises(ValueError, match="the array is on emulated, but device='emulated'"):
            mf.PCA(device=EmulatedDevice()).fit(there)
        with using_device(EmulatedDevice()), pytest.raises(ValueError, match="is on emulated"):
            mf.PCA().fit(there)
        with pytest.raises(ValueError, match="arrays are on emulated and on emulated"):
            metrics.trustworthiness(there, EmulatedDevice().array(X[:, :2]))

    def test_the_cpu_takes_them_too(self, emulated, X):
        model = mf.LaplacianEigenmaps(device="cpu").fit(emulated.array(X))
        assert not model.neighbor_search_.endswith("on emulated")
        assert isinstance(model.transform(emulated.array(X)), EmulatedArray)

    def test_functions(self, device, X):
        there, Y = device.array(X), mf.PCA(2).fit_transform(X)
        embedded, labels = device.array(Y), np.arange(60) % 3
        for measure in (metrics.trustworthiness, metrics.continuity, metrics.stress):
            assert measure(there, embedded) == pytest.approx(measure(X, Y), abs=1e-6)
        found, expected = mf.assess(there, embedded, labels), mf.assess(X, Y, labels)
        assert found.metrics.keys() == expected.metrics.keys()
        for name, value in expected.metrics.items():
            assert found.metrics[name] == pytest.approx(value, abs=1e-5), name
        maps = {"map": embedded, "LE": mf.LaplacianEigenmaps()}
        assert set(mf.compare(there, maps).metrics) == {"map", "LE"}
        assert metrics.procrustes(embedded, Y).error == pytest.approx(0, abs=1e-7)
        assert mf.estimate_dimension(there).dimension == mf.estimate_dimension(X).dimension
        graph, reference = mf.NeighborGraph.build(there, 8), mf.NeighborGraph.build(X, 8)
        assert graph.search.endswith(f"on {device.name}")
        np.testing.assert_array_equal(graph.indices, reference.indices)

    def test_other_readers_download_them(self, emulated, X):
        model = mf.ElasticEmbedding(init=emulated.array(X[:, :2]), max_iter=3).fit(X)
        assert model.embedding_.shape == (60, 2)

    def test_pytorch(self, cuda, X, X_new):
        torch = pytest.importorskip("torch")
        there = torch.tensor(X, device="cuda")
        model = mf.LaplacianEigenmaps().fit(there)
        Z = model.transform(torch.tensor(X_new, device="cuda", requires_grad=True))
        assert isinstance(Z, torch.Tensor)
        assert Z.device == there.device
        reference = mf.LaplacianEigenmaps(device=cuda).fit(X).transform(X_new)
        np.testing.assert_allclose(Z.cpu().numpy(), reference, rtol=1e-9)
        assert metrics.trustworthiness(there, Z[:0].new_tensor(X[:, :2])) > 0.5

    def test_pytorch_on_the_cpu(self, X):
        torch = pytest.importorskip("torch")
        model = mf.LaplacianEigenmaps().fit(torch.tensor(X))
        assert isinstance(model.transform(torch.tensor(X)), np.ndarray)


class TestCopies:
    def test_those_of_deleted_arrays_are_forgotten(self, emulated):
        X = np.ones((300, 300))
        with using_device(emulated):
            copy = emulated.array(X)
            assert emulated.array(X) is copy or np.shares_memory(emulated.array(X), copy)
            view = X.reshape(-1)
            assert emulated.held(view) is not None
            place = X.__array_interface__["data"][0]
            del X
            assert emulated.held(view) is not None
            del view
            other = np.ones((300, 300))
            if other.__array_interface__["data"][0] == place:
                assert emulated.held(other) is None
        assert emulated.held(np.ones((300, 300))) is None

    def test_those_that_are_in_the_way_are_forgotten(self, emulated):
        X = np.ones((300, 300))
        with using_device(emulated):
            emulated.array(X)
            with pytest.raises(MemoryError):
                emulated.plan(2**60, "a matrix", "pass fewer rows")
            assert emulated.held(X) is None

    def test_contexts_have_their_own(self, emulated):
        X = np.ones((300, 300))
        with using_device(emulated):
            emulated.array(X)
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(emulated.held, X).result() is None
            with using_device("cpu"), using_device(emulated):
                assert emulated.held(X) is None
            with using_device(emulated):
                assert emulated.held(X) is not None
