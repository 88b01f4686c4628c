"""The rule for the map to use, on maps with known metrics."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from manifoldry import PCA, TSNE, Isomap
from manifoldry.methods.choice import MethodChoice
from manifoldry.reporting.maps import MethodMap
from manifoldry.reporting.verdict import ChoiceRule, decide, trust_grade
from manifoldry.util.estimate import Estimate

ESTIMATORS = {"PCA": PCA(), "Isomap": Isomap(), "t-SNE": TSNE()}
SUITED = MethodChoice("tsne", "the data are in 3 separate parts")


def a_map(name, area, trust=0.97, stable="stable", dominated=(), doubtful=0.0, gain=0.2, **metrics):
    """A map of which only the evidence is known."""
    metrics |= {"rnx_area": area, "trustworthiness": trust, "untrustworthy_points": doubtful}
    found = SimpleNamespace(metrics=metrics, dominated_coordinates=list(dominated))
    found.gains = {"rnx_area": Estimate(gain, gain - 0.05, gain + 0.05)}
    method = {"t-SNE": "tsne"}.get(name, name.lower())
    refits = SimpleNamespace(verdict=stable)
    return MethodMap(name, method, ESTIMATORS[name], assessment=found, stability=refits)


def chosen(*maps):
    return ChoiceRule().choose(maps, SUITED)[0].name


def test_the_suited_method_is_taken_if_it_is_nearly_as_good():
    assert chosen(a_map("Isomap", 0.64), a_map("t-SNE", 0.60)) == "t-SNE"
    assert chosen(a_map("Isomap", 0.70), a_map("t-SNE", 0.60)) == "Isomap"


def test_pca_is_taken_if_the_other_map_keeps_no_more_neighbors():
    pca = a_map("PCA", 0.5)
    assert chosen(pca, a_map("t-SNE", 0.6, gain=0.1)) == "t-SNE"
    assert chosen(pca, a_map("t-SNE", 0.6, gain=0.04)) == "PCA"  # not significant
    assert chosen(pca, a_map("t-SNE", 0.6, gain=-0.1)) == "PCA"


@pytest.mark.parametrize(
    "flaw", [{"stable": "unstable"}, {"dominated": [1]}, {"unpredictability": 0.1}]
)
def test_a_map_with_a_serious_flaw_is_not_taken_unless_the_others_are_poor(flaw):
    flawed = a_map("Isomap", 0.60, **flaw)
    assert chosen(a_map("t-SNE", 0.30), flawed) == "t-SNE"
    assert chosen(a_map("t-SNE", 0.30, trust=0.7), flawed) == "Isomap"
    assert chosen(a_map("t-SNE", 0.30, dominated=[2]), flawed) == "Isomap"


FEW = MethodChoice("pca", "12 rows are too few for another method")


def test_pca_is_taken_if_no_other_method_suits_the_data():
    maps = a_map("PCA", 0.65, trust=0.94, stable="unstable"), a_map("t-SNE", 0.77, trust=0.88)
    assert chosen(*maps) == "t-SNE"
    taken, why = ChoiceRule().choose(maps, FEW)
    assert (taken.name, why) == ("PCA", FEW.reason)
    without, why = ChoiceRule().choose(maps[1:], FEW)
    assert without.name == "t-SNE"
    poor = a_map("PCA", 0.65, trust=0.6), maps[1]
    assert ChoiceRule().choose(poor, FEW)[0].name == "t-SNE"


def test_the_reason_is_not_taken_for_the_column_of_neighbors_kept():
    best = a_map("Isomap", 0.8), a_map("t-SNE", 0.4)
    why = ChoiceRule().choose(best, SUITED)[1]
    assert "R_NX area" in why
    assert "neighbors" not in why.replace("neighborhoods", "")


@pytest.mark.parametrize(
    ("correlation", "said"),
    [(0.95, "are in the order"), (0.7, "are roughly in the order"), (0.3, "gaps between them")],
)
def test_cautions_agree_with_the_column_of_distances(correlation, said):
    known = {"neighbor_preservation": 0.6, "continuity": 0.97}
    best = a_map("t-SNE", 0.6, distance_rank_correlation=correlation, **known)
    best = replace(best, stability=None)
    facts = SimpleNamespace(has_dominant_column=False, dominant=None, n_examined=12)
    verdict = decide([best], SUITED, facts, SimpleNamespace(sizes=[12]), None, False)
    assert "12 rows are few" in verdict.cautions[0]
    assert said in verdict.cautions[1]


def test_a_map_of_neighbors_only_may_move_as_a_whole():
    assert chosen(a_map("PCA", 0.30), a_map("t-SNE", 0.60, stable="unstable")) == "t-SNE"


def test_maps_that_failed_are_not_considered():
    failed = MethodMap("t-SNE", "tsne", None, error="no memory")
    assert chosen(failed, a_map("Isomap", 0.1)) == "Isomap"


@pytest.mark.parametrize(
    ("trust", "doubtful", "grade"),
    [(0.96, 0.0, "good"), (0.96, 0.2, "fair"), (0.90, 0.0, "fair"), (0.80, 0.5, "poor")],
)
def test_grades_are_those_of_the_summary_of_assess(trust, doubtful, grade):
    assert trust_grade(a_map("PCA", 0.5, trust=trust, doubtful=doubtful)) == grade
