"""Fits that are interrupted and continue from their checkpoints."""

import pickle
import shutil
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import manifoldry as mf
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.iterative.forecast import Forecast, Phase
from manifoldry.iterative.resume import ResumableSearches
from manifoldry.optimize import (
    LBFGS,
    Checkpoint,
    ConstrainedHomotopy,
    EarlyExaggeration,
    Heat,
    Homotopy,
    Iterate,
    Optimizer,
)
from manifoldry.optimize.checkpoint import SavedSearches

pytestmark = pytest.mark.filterwarnings("ignore:.* did not converge")

TSNE = partial(mf.TSNE, perplexity=10, early_exaggeration=EarlyExaggeration(n_iter=10), max_iter=20)


class KilledError(Exception):
    """Raised by a callback."""


def stop_at(iteration, error=KilledError):
    def stop(iterate):
        if iterate.step.iteration >= iteration:
            raise error

    return stop


def assert_same_fit(model, whole):
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)
    for name in whole.trace_.dtype.names:
        np.testing.assert_array_equal(model.trace_[name], whole.trace_[name])
    assert (model.loss_, model.status_) == (whole.loss_, whole.status_)
    assert model.n_evaluations_ == whole.n_evaluations_
    path = getattr(whole, "path_", None)
    if path is not None:
        assert str(model.path_.steps) == str(path.steps)
        np.testing.assert_array_equal(model.path_.embeddings, path.embeddings)


def assert_resumes(make, X, path, fractions=(0.0, 0.4, 0.7, 1.0)):
    """A fit that is interrupted several times, against one that is not."""
    whole = make().fit(X)
    for fraction in fractions:
        stop = stop_at(int(fraction * whole.n_iter_))
        with pytest.raises(KilledError):
            make(callback=Checkpoint(path, function=stop)).fit(X)
    assert_same_fit(make(callback=Checkpoint(path)).fit(X), whole)


def test_the_same_bits_after_interruptions(make, X, tmp_path):
    assert_resumes(make, X, tmp_path / "fit.npz")


@pytest.mark.parametrize(
    "fit",
    [
        partial(mf.TSNE, perplexity=10, optimizer=Homotopy(n_steps=3), max_iter=20),
        partial(mf.UKR, max_iter=20, optimizer=Homotopy(n_steps=3)),
        partial(mf.ElasticEmbedding, weight=20.0, optimizer=ConstrainedHomotopy(n_steps=3)),
        partial(mf.SNE, init="random", optimizer=LBFGS(Heat(start=5.0)), random_state=3),
    ],
    ids=["t-SNE homotopy", "growing box", "constrained homotopy", "guidance"],
)
def test_the_same_bits_with_other_searches(fit, X, tmp_path):
    assert_resumes(fit, X, tmp_path / "fit.npz", fractions=(0.5,))


def test_approximate_sums(tmp_path):
    X = np.random.default_rng(0).normal(size=(2100, 3))
    make = partial(mf.TSNE, early_exaggeration=EarlyExaggeration(n_iter=5), max_iter=5)
    assert_resumes(make, X, tmp_path / "fit.npz", fractions=(0.7,))


def test_a_killed_process_leaves_its_last_checkpoint(X, tmp_path):
    """Copies of the file, as it is while the fit continues."""
    path, whole = tmp_path / "fit.npz", TSNE().fit(X)

    def copy(iterate):
        if iterate.step.iteration in (5, 15, 25):
            shutil.copy(path, tmp_path / f"{iterate.step.iteration}.npz")

    TSNE(callback=Checkpoint(path, every_seconds=0, function=copy)).fit(X)
    for iteration in (5, 15, 25):
        seen = []
        again = Checkpoint(
            tmp_path / f"{iteration}.npz", function=lambda it, seen=seen: seen.append(it.step)
        )
        assert_same_fit(TSNE(callback=again).fit(X), whole)
        # The copy was made before the checkpoint of its own step was written.
        assert [step.iteration for step in seen] == list(range(iteration, 31))


@pytest.mark.parametrize(
    "stop", [stop_at(12, KeyboardInterrupt), lambda it: it.step.iteration > 11]
)
def test_after_ctrl_c_and_a_stop_by_the_callback(stop, X, tmp_path):
    path, whole = tmp_path / "fit.npz", TSNE().fit(X)
    first = TSNE(callback=Checkpoint(path, function=stop, on_interrupt="keep")).fit(X)
    assert first.n_iter_ == 12
    assert_same_fit(TSNE(callback=Checkpoint(path)).fit(X), whole)


def test_a_finished_fit_is_read_from_its_file(X, tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit.npz")
    whole = TSNE(callback=checkpoint).fit(X)
    seen = []
    again = TSNE(callback=Checkpoint(tmp_path / "fit.npz", function=seen.append)).fit(X)
    assert_same_fit(again, whole)
    assert seen == []
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


class Foreign(Optimizer):
    """An optimizer from elsewhere, which knows nothing about saved states."""

    def minimize(self, objective, Y, callback=None):
        def forward(iterate):
            callback(Iterate(iterate.embedding, iterate.step))

        return LBFGS().minimize(objective, Y, forward)

    def with_stopping(self, max_iter, tol):
        return self

    def with_looser_stopping(self, max_iter, tol):
        return self


def test_an_optimizer_without_states_repeats_its_search(X, tmp_path):
    assert_resumes(
        partial(mf.SymmetricSNE, init="pca", optimizer=Foreign()), X, tmp_path / "fit.npz", (0.5,)
    )


OTHERS = {
    "the data": (TSNE(), lambda X: X[:-1]),
    "the data ": (TSNE(), lambda X: X + 1),
    "the estimator": (mf.SNE(), lambda X: X),
    "max_iter was 20 and is 21": (TSNE().set_params(max_iter=21), lambda X: X),
    "perplexity was 10 and is 11": (TSNE().set_params(perplexity=11), lambda X: X),
    "optimizer": (TSNE().set_params(optimizer="lbfgs"), lambda X: X),
    "random_state": (TSNE().set_params(random_state=np.random.default_rng(0)), lambda X: X),
    "init": (TSNE().set_params(init=np.random.default_rng(0).normal(size=(90, 2))), lambda X: X),
}


@pytest.fixture(scope="module", name="saved")
def checkpoint_of_a_fit(X, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "fit.npz"
    with pytest.raises(KilledError):
        TSNE(callback=Checkpoint(path, function=stop_at(15))).fit(X)
    return path


@pytest.mark.parametrize("what", OTHERS)
def test_another_fit_is_refused(what, saved, X):
    model, change = OTHERS[what]
    before = saved.read_bytes()
    model = clone(model).set_params(callback=Checkpoint(saved))
    with pytest.raises(ValueError, match=f"of another fit: .*{what.strip()}.*resume=False"):
        model.fit(change(X))
    assert saved.read_bytes() == before


def test_what_does_not_change_the_result_may_differ(saved, X, tmp_path):
    path = tmp_path / "fit.npz"
    shutil.copy(saved, path)
    seen = []
    checkpoint = Checkpoint(path, every_seconds=1, function=seen.append)
    TSNE(callback=checkpoint, n_jobs=1).fit(X)
    assert seen[0].step.iteration == 16


def test_overwriting(saved, X, tmp_path):
    path = tmp_path / "fit.npz"
    shutil.copy(saved, path)
    make = partial(mf.SNE, init="pca", max_iter=5)
    model = make(callback=Checkpoint(path, resume=False)).fit(X)
    assert_same_fit(make(callback=Checkpoint(path)).fit(X), model)


def test_files_that_are_no_checkpoints(saved, X, tmp_path):
    whole = saved.read_bytes()
    path = tmp_path / "fit.npz"
    np.savez(tmp_path / "arrays.npz", Y=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", format=np.array([object()]))
    others = [(tmp_path / f"{name}.npz").read_bytes() for name in ("arrays", "pickled")]
    for content in (b"", b"text", whole[: len(whole) // 2], whole[:-30], *others):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a checkpoint, or a damaged one"):
            TSNE(callback=Checkpoint(path)).fit(X)
        assert path.read_bytes() == content


def test_files_of_another_format(saved, X, tmp_path):
    path = tmp_path / "fit.npz"
    with np.load(saved) as file:
        np.savez(path, **{**file, "format": 99})
    with pytest.raises(ValueError, match=r"has the format 99, but this version .* reads format 1"):
        TSNE(callback=Checkpoint(path)).fit(X)


def test_a_crash_while_writing_leaves_the_last_checkpoint(saved, X, tmp_path, monkeypatch):
    path = tmp_path / "fit.npz"
    shutil.copy(saved, path)

    def crash(file, **arrays):
        file.write(b"half of it")
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez", crash)
    with pytest.warns(ManifoldryWarning, match="was not written .*disk is full"):
        model = TSNE(callback=Checkpoint(path)).fit(X)
    assert path.read_bytes() == saved.read_bytes()
    assert_same_fit(model, TSNE().fit(X))


def test_searches_at_other_parameters_are_not_used(X, tmp_path):
    """As if rounding errors on another machine had led to another path."""
    path = tmp_path / "fit.npz"
    make = partial(mf.SymmetricSNE, optimizer=Homotopy(n_steps=4))
    whole = make(callback=Checkpoint(path)).fit(X)
    searches = SavedSearches.read(path)
    searches.parameters[2] *= 1.5
    searches.write(path)
    with pytest.warns(ManifoldryWarning, match="search 3 of the checkpoint had the parameter"):
        assert_same_fit(make(callback=Checkpoint(path)).fit(X), whole)


def test_when_checkpoints_are_written(X, tmp_path):
    now, written = [0.0], []

    class Searches(SavedSearches):
        def write(self, path):
            written.append(now[0])

    checkpoint = Checkpoint(tmp_path / "fit.npz", every_seconds=10)
    searches = ResumableSearches(checkpoint, Searches({}), clock=lambda: now[0])
    for now[0] in range(31):
        searches.write_if_due()
    assert written == [10, 20, 30]


def test_progress_counts_saved_steps_but_not_their_time():
    times = iter(np.arange(100.0))
    forecast = Forecast([Phase("search", 20, 1000)], clock=lambda: next(times))
    forecast.begin()
    for _ in range(10):
        forecast.advance(timed=False)
    for _ in range(5):
        forecast.advance()
    assert (forecast.fraction, forecast.seconds_left) == (0.75, 5.0)


def test_the_parameters_of_a_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder; make it"):
        TSNE(callback=Checkpoint(tmp_path / "none" / "fit.npz")).fit(np.eye(20))
    with pytest.raises(TypeError, match="path=3 must be the path of a file"):
        Checkpoint(3)
    with pytest.raises(ValueError, match="every_seconds"):
        Checkpoint("fit.npz", every_seconds=-1)
    with pytest.raises(TypeError, match="function=3 must be callable"):
        Checkpoint("fit.npz", function=3)


def test_a_folder_in_which_nothing_can_be_written(X, tmp_path):
    """It is noticed before the first step, not when the first checkpoint is due."""
    seen, path = [], tmp_path / "fit.npz"
    (tmp_path / "fit.npz.part").mkdir()  # as if it were not writable, also for the superuser
    with pytest.raises(OSError, match=r"fit.npz cannot be written.*\.part.*another path"):
        TSNE(callback=Checkpoint(path, function=seen.append)).fit(X)
    assert seen == []


def test_the_home_folder(X, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    TSNE(callback=Checkpoint("~/fit.npz"), max_iter=1).fit(X)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


def test_verbose_fits_say_what_the_checkpoint_has(saved, X, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)  # lines on stderr
    path = tmp_path / "fit.npz"
    shutil.copy(saved, path)
    TSNE(callback=Checkpoint(path), verbose=True).fit(X)
    resumed = capsys.readouterr().err
    assert f"TSNE: continues from {path}, which has 15 steps" in resumed
    assert "no step was taken" not in resumed
    TSNE(callback=Checkpoint(path), verbose=True).fit(X)
    finished = capsys.readouterr().err
    assert f"TSNE: continues from {path}, which has 30 steps" in finished
    assert "no step was taken, because the checkpoint has all of them" in finished
    TSNE(callback=Checkpoint(tmp_path / "new.npz"), verbose=True).fit(X)
    assert "checkpoint" not in capsys.readouterr().err


def test_estimators_with_a_checkpoint_are_copied_and_pickled(tmp_path):
    model = TSNE(callback=Checkpoint(tmp_path / "fit.npz", every=3))
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.callback == model.callback


def test_a_folder_is_not_a_checkpoint(X, tmp_path):
    with pytest.raises(IsADirectoryError, match="pass the path of a file"):
        mf.TSNE(callback=Checkpoint(tmp_path)).fit(X)
