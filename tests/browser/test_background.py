"""Work in the background: evidence of maps, maps by the form, progress, cancel, stop and keep."""

import re

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import placed_in, until

WORK = 120  # seconds


def evidence_of(page, name):
    """The evidence of a map, computed by the button if it is not known yet."""
    page.plot(name).focus()
    panel = page.panel("Evidence")
    button = panel.get_by_role("button", name=f"Compute evidence of {name}")
    until(
        lambda: button.is_visible() or panel.locator(".verdict").is_visible(), "the panel is filled"
    )
    if button.is_visible():
        button.click()
        until(
            lambda: (
                "Being computed" in panel.inner_text() or panel.locator(".verdict").is_visible()
            ),
            "it says so",
        )
    known = "app.evidence.value.has(argument)"
    until(lambda: page.js(known, page.maps()[name]), "the evidence", WORK)
    until(lambda: panel.locator(".verdict").is_visible(), "it is shown")
    return page.js(
        "JSON.parse(JSON.stringify(app.evidence.value.get(argument)))", page.maps()[name]
    )


def plain(value):
    """A number with four digits, as the page writes it."""
    return float(f"{value:.4g}")


def test_evidence_is_computed_shown_and_compared(flowers_page, flowers):
    from manifoldry import assess

    evidence = evidence_of(flowers_page, "PCA")
    panel = flowers_page.panel("Evidence")
    text = panel.inner_text()
    # The verdict in words, and in the title of the map.
    assert evidence["grade"] in ("good", "fair", "poor")
    assert evidence["sentences"]
    assert all(sentence in text for sentence in evidence["sentences"])
    title = flowers_page.page.locator(".map", has=flowers_page.plot("PCA")).locator("header")
    assert f"evidence: {evidence['grade']}" in title.inner_text()
    # Metrics are those of the library.
    found = assess(flowers.X, flowers.models["PCA"], flowers.labels, random_state=0)
    assert len(evidence["metrics"]) >= 4
    rows = {
        row.get_by_role("rowheader").inner_text(): row.get_by_role("cell").first.inner_text()
        for row in panel.locator("table.metrics").get_by_role("row").all()
    }
    for metric in evidence["metrics"]:
        assert metric["value"] == pytest.approx(float(found.metrics[metric["name"]]), rel=1e-6)
        assert float(rows[metric["title"]].split()[0]) == plain(metric["value"])
    # The diagrams say in words what they show.
    labels = [each.get_attribute("aria-label") for each in panel.locator("svg.chart").all()]
    shepard, spectrum, redundancy, neighbors = (
        next(label for label in labels if label.startswith(start))
        for start in (
            "Shepard diagram",
            "eigenvalues of PCA",
            "New part of each coordinate",
            "Neighbors kept",
        )
    )
    assert float(re.search(r"correlation is ([\d.]+)\.", shepard)[1]) == pytest.approx(
        found.shepard.spearman, abs=1e-3
    )
    kept = [plain(value) for value in flowers.models["PCA"].eigenvalues_]
    assert f"The map keeps 2: {kept[0]:g}, {kept[1]:g}" in spectrum
    assert "No coordinate is redundant." in redundancy
    assert float(re.search(r"area ([\d.]+);", neighbors)[1]) == pytest.approx(
        found.curves["embedding"].area, abs=1e-3
    )
    assert panel.locator("svg.chart rect.cell").count() > 50
    flowers_page.shot("evidence", panel.locator(".verdict"))

    # Each row has evidence of its own, by which it is colored.
    flowers_page.color_by("trustworthiness")
    color = flowers_page.panel("Color")
    until(lambda: "These are of PCA." in color.inner_text(), "the ramp of PCA")
    values = flowers_page.js(
        "app.color(argument).then(c => [...c.values])", flowers_page.maps()["PCA"]
    )
    assert np.mean(values) == pytest.approx(float(found.metrics["trustworthiness"]), abs=5e-3)
    flowers_page.shot("color-by-evidence", color)

    # Where it is not known yet, it is offered; then there is a table of both maps.
    flowers_page.plot("elsewhere").focus()
    until(
        lambda: "For elsewhere, trustworthiness is not known yet." in color.inner_text(),
        "the offer",
    )
    color.get_by_role("button", name="Compute it").click()
    until(
        lambda: "These are of elsewhere." in color.inner_text(), "the ramp of the other map", WORK
    )
    other = evidence_of(flowers_page, "elsewhere")
    table = panel.get_by_role("region", name="Metrics of the maps").get_by_role("table")
    assert table.get_by_role("columnheader").all_inner_texts() == ["metric", "PCA", "elsewhere"]
    by_title = {each["title"]: each["value"] for each in evidence["metrics"]}
    values = {each["title"]: each["value"] for each in other["metrics"]}
    for row in table.get_by_role("row").all()[1:]:
        name = row.get_by_role("rowheader").inner_text()
        cells = [cell.split()[0] for cell in row.get_by_role("cell").all_inner_texts()]
        for cell, value in zip(cells, (by_title.get(name), values.get(name)), strict=True):
            assert cell == "–" if value is None else float(cell) == float(f"{value:.3g}")
    flowers_page.shot("quality-table", table)


def form(page):
    return page.panel("Maps and work").locator("form", has_text="Add a map")


def job(page, text):
    return (
        page.page.get_by_role("list", name="Work")
        .get_by_role("listitem")
        .filter(has_text=text)
        .first
    )


def test_map_is_added_by_the_form(flowers_page, flowers, flowers_explored):
    panel = flowers_page.panel("Maps and work")
    form(flowers_page).get_by_label("Method").select_option("isomap")
    form(flowers_page).get_by_label("n_neighbors").fill("60")
    form(flowers_page).get_by_role("button", name="Fit").click()
    until(lambda: "Started: Isomap of 150 rows." in panel.inner_text(), "it has started")
    until(lambda: flowers_page.plot("Isomap").count() == 1, "the map is there", WORK)
    until(lambda: "done" in job(flowers_page, "Isomap of 150 rows").inner_text(), "it is done")
    flowers_explored.server.cancel_all()  # its evidence

    from manifoldry import Isomap

    Y = Isomap(2, n_neighbors=60).fit_transform(flowers.X)
    found = flowers_page.positions("Isomap")
    distances = [np.linalg.norm(each[:, None] - each[None], axis=2) for each in (Y, found)]
    np.testing.assert_allclose(
        distances[1] / distances[1].max(), distances[0] / distances[0].max(), atol=1e-4
    )
    # It is turned like the first map, can be asked for data, and can be removed.
    assert flowers_page.js(
        "app.map(argument).can_invert && app.map(argument).can_place", flowers_page.maps()["Isomap"]
    )
    remove = panel.get_by_role("button", name="Remove the map Isomap")
    remove.click()
    assert flowers_page.plot("Isomap").count() == 1  # it asks once more
    panel.get_by_role("button", name="Remove the map Isomap: Remove for good?").click()
    until(lambda: flowers_page.plot("Isomap").count() == 0, "the map is gone")
    assert "Isomap" not in flowers_page.maps()


def test_settings_that_do_not_fit_are_explained(flowers_page):
    form(flowers_page).get_by_label("Method").select_option("isomap")
    form(flowers_page).get_by_label("n_neighbors").fill("500")
    form(flowers_page).get_by_role("button", name="Fit").click()
    failed = job(flowers_page, "n_neighbors=500")
    until(failed.is_visible, "the reason is there", WORK)
    assert "must be less than" in failed.inner_text()
    assert flowers_page.plot("Isomap").count() == 0


def test_model_is_saved_to_a_file(flowers_page, flowers, tmp_path):
    from manifoldry.io import load

    panel = flowers_page.panel("Maps and work")
    with flowers_page.page.expect_download() as download:
        panel.get_by_role("button", name="Save the model of PCA to a file").click()
    download.value.save_as(tmp_path / "kept.model")
    np.testing.assert_array_equal(
        load(tmp_path / "kept.model").transform(flowers.X),
        flowers.models["PCA"].transform(flowers.X),
    )
    until(
        lambda: f"manifoldry explore {download.value.suggested_filename}" in panel.inner_text(),
        "what to do with it",
    )
    # Of a map that came as numbers there is no model.
    assert panel.get_by_role("button", name="Save the model of elsewhere").count() == 0


@pytest.mark.slow
def test_stability_is_computed_and_a_color(flowers_page):
    evidence_of(flowers_page, "PCA")
    panel = flowers_page.panel("Evidence")
    panel.get_by_role("button", name="Refit 5 times").click()
    until(lambda: "over 5 refits" in panel.inner_text(), "the verdict", WORK)
    known = flowers_page.js(
        "app.evidence.value.get(argument).stability", flowers_page.maps()["PCA"]
    )
    assert known["verdict"] in panel.inner_text()
    flowers_page.color_by("stability")
    until(lambda: "These are of PCA." in flowers_page.panel("Color").inner_text(), "the ramp")


@pytest.fixture
def crowd(start_server, tmp_path):
    """The server of enough rows that an embedding takes its time; a map of three coordinates."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 12)) + 4 * rng.integers(0, 2, size=(2000, 12))
    np.save(tmp_path / "crowd.npy", X)
    np.save(tmp_path / "first.npy", X[:, :3])
    server = start_server(tmp_path, "crowd.npy", "--map", "first.npy")
    server.cancel_all()
    return server, X


def is_placed(points, drawn):
    try:
        return placed_in(points, drawn) is not None
    except AssertionError:
        return False


def test_progress_cancel_and_stop(crowd, open_page):
    server, X = crowd
    page = open_page(server.link)
    # Of three coordinates, two are drawn.
    placed_in(X[:, [0, 1]], page.positions("first"))
    page.page.get_by_label("Coordinate upwards").select_option("3")
    until(lambda: is_placed(X[:, [0, 2]], page.positions("first")), "the third coordinate is drawn")

    page.panel("Maps and work")
    form(page).get_by_label("Method").select_option("elastic-embedding")
    form(page).get_by_role("button", name="Fit").click()
    entry = job(page, "Elastic embedding of 2,000 rows")
    until(lambda: re.search(r"step|value", entry.inner_text()), "it says how far it is", WORK)
    bar = entry.get_by_role("progressbar")
    until(lambda: 0 < float(bar.get_attribute("value") or 0) < 1, "the bar grows", WORK)
    # The map so far is beside the others, and moves.
    preview = page.page.get_by_role(
        "application", name="Map Elastic embedding, so far of 2,000 rows"
    )
    until(preview.is_visible, "the map so far", WORK)
    page.shot("work")
    stop = entry.get_by_role(
        "button", name="Stop Elastic embedding of 2,000 rows and keep the map so far"
    )
    stop.click()
    until(lambda: page.plot("Elastic embedding").count() == 1, "the map so far is kept", WORK)
    until(lambda: not preview.is_visible(), "its preview is gone")
    until(lambda: np.isfinite(page.positions("Elastic embedding")).all(), "its points are there")
    until(lambda: "done" in entry.inner_text(), "it is done")
    assert not stop.is_visible()
    server.cancel_all()  # its evidence

    form(page).get_by_role("button", name="Fit").click()
    until(
        lambda: "done" not in job(page, "Elastic embedding of 2,000 rows").inner_text(),
        "it runs again",
    )
    entry.get_by_role("button", name="Cancel Elastic embedding of 2,000 rows").click()
    until(lambda: "canceled" in entry.inner_text(), "it was canceled")
    until(
        lambda: not entry.get_by_role("button").filter(visible=True).count(), "no button any more"
    )
    assert sorted(page.maps()) == ["Elastic embedding", "first"]
