"""scikit-learn's own callbacks, where the installed version has them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import manifoldry as mf
from manifoldry.optimize import EarlyExaggeration

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")


class Recorder:
    """Follows the protocol of a FitCallback and keeps what it is told."""

    def __init__(self, stop_after=np.inf):
        self.told, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.told.append(("end", context.task_name))
        return self.count("end", "step") > self.stop_after

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name))

    def count(self, *what):
        return self.told.count(what)


def test_one_task_per_step_within_the_fit(X):
    recorder = Recorder()
    model = mf.SNE().set_callbacks(recorder).fit(X)
    assert recorder.told[:2] == [("setup", "fit"), ("begin", "fit")]
    assert recorder.told[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert recorder.told[2:-2] == [("begin", "step"), ("end", "step")] * (model.n_iter_ + 1)


def test_a_callback_can_stop(X):
    recorder = Recorder(stop_after=4)
    model = mf.SNE().set_callbacks(recorder).fit(X)
    assert model.n_iter_ == 4
    assert model.status_ == "stopped by a callback"
    assert recorder.count("teardown", "fit") == 1


def test_the_map_is_the_same(X):
    plain, watched = mf.SNE().fit(X), mf.SNE().set_callbacks(Recorder()).fit(X)
    assert np.array_equal(plain.embedding_, watched.embedding_)
    assert set(vars(watched)) - set(vars(plain)) == {"_skl_callbacks"}


def test_callbacks_outlive_fits_and_not_clones(X):
    recorder = Recorder()
    model = mf.SNE().set_callbacks(recorder).fit(X)
    model.fit(X)
    assert recorder.count("setup", "fit") == recorder.count("teardown", "fit") == 2
    clone(model.set_callbacks()).fit(X)
    assert recorder.count("setup", "fit") == 2


def test_a_failed_fit_is_torn_down(X):
    recorder = Recorder()
    model = mf.SNE(n_components=500).set_callbacks(recorder)
    with pytest.raises(ValueError, match="n_components=500"):
        model.fit(X)
    assert recorder.count("teardown", "fit") == 1
    assert set(vars(model)) == {*model.get_params(), "_skl_callbacks"}


def test_an_interrupted_fit_is_torn_down(X):
    def interrupt(iterate):
        raise KeyboardInterrupt

    recorder = Recorder()
    with pytest.raises(KeyboardInterrupt):
        mf.SNE(callback=interrupt).set_callbacks(recorder).fit(X)
    assert recorder.told[-2:] == [("end", "fit"), ("teardown", "fit")]


def test_in_a_pipeline(X):
    recorder = Recorder()
    model = mf.TSNE(early_exaggeration=EarlyExaggeration(n_iter=5), max_iter=5).set_callbacks(
        recorder
    )
    make_pipeline(StandardScaler(), model).fit_transform(X)
    assert recorder.count("begin", "step") == 11  # the start, and five steps of each phase


def test_only_callbacks_are_taken(X):
    with pytest.raises(TypeError, match="FitCallback protocol"):
        mf.SNE().set_callbacks(print)
