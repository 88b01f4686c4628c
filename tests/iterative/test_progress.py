"""What a fit says about its progress and its length; time is that of a clock made for the test."""

import re
import warnings
from functools import partial

import numpy as np
import pytest

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import LongFitWarning
from manifoldry.iterative import base
from manifoldry.iterative.forecast import Forecast, Phase, duration
from manifoldry.optimize import LBFGS, EarlyExaggeration, Homotopy, Momentum, Stopping
from manifoldry.util import progress


class Clock:
    """A clock that advances by a fixed time with every reading."""

    def __init__(self, tick):
        self.tick, self.now = tick, 0.0

    def __call__(self):
        self.now += self.tick
        return self.now


@pytest.fixture(name="X")
def roll():
    return make_swiss_roll(150, random_state=0).X


@pytest.fixture
def clock(monkeypatch):
    """Let every step take as long as the test says; return the forecasts that were made."""

    def install(tick):
        made = []

        def forecast(phases):
            made.append(Forecast(phases, Clock(tick)))
            return made[-1]

        monkeypatch.setattr(base, "Forecast", forecast)
        return made

    return install


@pytest.fixture
def lines(monkeypatch):
    """Report in lines, all of them, as if rich were not installed."""
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    monkeypatch.setattr(base, "ProgressReporter", partial(progress.ProgressReporter, seconds=0.0))


def run(forecast, counts, parameters):
    for count, parameter in zip(counts, parameters, strict=True):
        forecast.begin(parameter)
        for _ in range(count):
            forecast.advance()


class TestForecast:
    def test_the_time_of_a_homotopy_from_its_first_steps(self):
        forecast = Forecast([Phase("homotopy", 16, 100, 20, "λ")], Clock(2.0))
        run(forecast, [4], [0.1])
        assert 2 / 3 < forecast.seconds / (20 * 12 * 2.0) < 3 / 2

    def test_later_searches_take_as_long_as_earlier_ones(self):
        forecast = Forecast([Phase("homotopy", 16, 100, 10, "λ")], Clock(1.0))
        run(forecast, [40, 40, 40, 40, 40, 0], range(6))
        assert forecast.seconds_left == pytest.approx(5 * 40)
        assert forecast.fraction == pytest.approx(0.5)

    def test_phases_follow_each_other(self):
        phases = [Phase("early exaggeration", 250, 250), Phase("search", 500, 500)]
        forecast = Forecast(phases, Clock(1.0))
        run(forecast, [250], [1 / 12])
        assert forecast.seconds_left == pytest.approx(500)
        run(forecast, [500], [np.nan])
        assert forecast.phase.name == "search"
        assert (forecast.fraction, forecast.seconds_left) == (1.0, 0.0)

    def test_a_repeated_search_is_not_counted(self):
        forecast = Forecast([Phase("homotopy", 10, 100, 3, "λ")], Clock(1.0))
        run(forecast, [10, 10, 10], [0.1, 0.1, 0.2])
        assert "(2 of 3)" in str(forecast)

    def test_the_fraction_never_decreases(self):
        """Though the last search takes many more steps than those before."""
        forecast = Forecast([Phase.homotopy("λ", Homotopy(n_steps=3), "λ")])
        fractions = []
        for value, steps in ((1.0, 10), (2.0, 10), (3.0, 200)):
            forecast.begin(value)
            for _ in range(steps):
                forecast.advance()
                fractions.append(forecast.fraction)
        assert (np.diff(fractions) >= 0).all()

    def test_the_fraction_grows_until_the_end(self):
        forecast = Forecast([Phase("search", 70, 1000)], Clock(1.0))
        fractions = []
        for count in [1] * 400:
            run(forecast, [count], [0.0])
            fractions.append(forecast.fraction)
        assert (np.diff(fractions) >= 0).all()
        assert fractions[-1] < 1  # it has not ended

    def test_no_prediction_before_some_steps_or_seconds(self):
        forecast = Forecast([Phase("search", 70, 1000)], Clock(1.0))
        run(forecast, [3], [0.0])
        assert np.isnan(forecast.seconds)
        run(forecast, [1], [0.0])
        assert np.isfinite(forecast.seconds)
        slow = Forecast([Phase("search", 70, 1000)], Clock(60.0))
        run(slow, [2], [0.0])
        assert slow.seconds == pytest.approx(70 * 60)

    def test_unknown_numbers_of_steps(self):
        forecast = Forecast([Phase("unfolding", None, None, parameter="penalty")], Clock(1.0))
        run(forecast, [10, 10], [1.0, 2.0])
        assert np.isnan(forecast.fraction)
        assert forecast.remainder == ""
        assert str(forecast) == "unfolding, penalty 2, step 10"

    def test_expected_steps_of_optimizers(self):
        stopping = Stopping(max_iter=40)
        assert Phase.search("", LBFGS(stopping=stopping)).steps == 40
        assert Phase.search("", Momentum(stopping=Stopping(max_iter=500))).steps == 500
        assert Phase.homotopy("", Homotopy(values=(0.1, 0.2)), "λ").n_searches == 3


@pytest.mark.parametrize(
    "model",
    [
        mf.SNE(),
        mf.SNE(init="pca", optimizer="lbfgs"),
        mf.TSNE(early_exaggeration=EarlyExaggeration(12, 25), max_iter=50),
        mf.TSNE(optimizer=Homotopy(n_steps=5), max_iter=20),
        mf.ElasticEmbedding(),
        mf.ElasticEmbedding(weight=100.0),
        mf.UKR(n_components=1, init="pca", optimizer=Homotopy(n_steps=5)),
    ],
    ids=["homotopy", "search", "t-SNE", "t-SNE homotopy", "weight", "elastic", "box"],
)
def test_the_prediction_is_near_the_truth(model, X, clock, lines, capsys):
    """Before the fourth step: within a factor of three of the number of steps of the fit."""
    (forecasts := clock(1.0)).clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(verbose=True).fit(X)
    said = re.search(r"150 points will take about (\d+) (second|minute)", capsys.readouterr().err)
    predicted = int(said[1]) * {"second": 1, "minute": 60}[said[2]]
    assert 1 / 3 < predicted / forecasts[-1].done < 3


def test_a_long_fit_says_so(X, clock):
    clock(30.0)
    with pytest.warns(LongFitWarning) as caught:
        mf.SNE().fit(X)
    assert len(caught) == 1
    text = str(caught[0].message)
    assert re.match(r"SNE of 150 points will take about \d+ hours on \d+ thread", text)
    assert "fit a random sample of 10, which takes about 1 minute" in text
    assert "verbose=True" in text


def test_a_short_fit_says_nothing(X, clock, capsys):
    clock(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LongFitWarning)
        mf.SNE().fit(X)
    assert capsys.readouterr() == ("", "")


def test_a_long_fit_with_progress_does_not_warn(X, clock, lines, capsys):
    clock(30.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LongFitWarning)
        mf.SNE(verbose=True).fit(X)
    assert "10 would take about 1 minute" in capsys.readouterr().err


def test_lines_of_a_homotopy(X, lines, capsys):
    mf.SNE(verbose=True, optimizer=Homotopy(n_steps=4)).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    pattern = r"SNE: homotopy, λ \S+ \(3 of 4\), step \d+; value \S+, \|g\| \S+; \d+%, \d+ \w+ left"
    assert re.search(pattern, err)
    assert err.splitlines()[-1].startswith("SNE: ")
    assert "steps change the embedding" in err.splitlines()[-1]


def test_lines_of_early_exaggeration(X, lines, capsys):
    mf.TSNE(verbose=True, early_exaggeration=EarlyExaggeration(12, 10, 2), max_iter=10).fit(X)
    err = capsys.readouterr().err
    assert err.count("TSNE: early exaggeration, step 5 of at most 5") == 2
    assert re.search(r"TSNE: search, step 10 of at most 10; value \S+, \|g\| \S+; 100%", err)


def test_the_bar_of_rich_has_the_same_text(X, capsys):
    pytest.importorskip("rich")
    mf.SNE(verbose=True, optimizer=Homotopy(n_steps=4)).fit(X)
    assert "150 points will take" in " ".join(capsys.readouterr().err.split())


def test_durations():
    assert duration(90) == "2 minutes"
    assert duration(7199) == "120 minutes"
    assert duration(7200) == "2 hours"
