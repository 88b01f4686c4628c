"""The slider along the homotopy of an elastic embedding, and how it plays."""

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-browser")
from explorer_driver import until

NAME = "Elastic embedding"


@pytest.fixture
def path(digits_page):
    return digits_page.page.get_by_role("group", name=f"Path of {NAME}")


def kept(digits):
    """Parameters and embeddings of the steps, and the step that is the map itself."""
    model = digits.models[NAME]
    parameters = model.path_.column("parameter")[model.path_.kept]
    own = int(np.argmin(np.abs(parameters - model.weight_)))
    assert parameters[own] == pytest.approx(model.weight_)
    return parameters, model.path_.embeddings, own


def until_drawn(page, embedding):
    """Wait until the map shows an embedding."""
    until(lambda: same_shape(page.positions(NAME), embedding), "the step is drawn")


def same_shape(drawn, embedding):
    """Whether one is the other turned, mirrored, scaled and moved."""
    centered = [each - each.mean(axis=0) for each in (drawn, embedding)]
    A, B = (each / np.linalg.norm(each) for each in centered)
    return np.linalg.svd(A.T @ B, compute_uv=False).sum() > 1 - 1e-6


def test_only_maps_with_a_homotopy_have_a_slider(digits_page):
    groups = digits_page.page.get_by_role("group", name="Path of")
    assert [each.get_attribute("aria-label") for each in groups.all()] == [f"Path of {NAME}"]


def test_slider_shows_the_steps_that_were_kept(digits_page, digits, path):
    parameters, embeddings, own_step = kept(digits)
    own = digits_page.positions(NAME)
    slider = path.get_by_role("slider", name="Step of the path")
    last = int(slider.get_attribute("max"))
    assert last == len(parameters) - 1
    assert float(slider.input_value()) == own_step < last
    for step in (0, last):
        slider.fill(str(step))
        until_drawn(digits_page, embeddings[step])
        assert path.locator("output").inner_text() == f"λ = {parameters[step]:.3g}"
        assert (
            slider.get_attribute("aria-valuetext")
            == f"λ = {parameters[step]:.3g}, step {step + 1} of {last + 1}"
        )
        assert np.abs(digits_page.positions(NAME) - own).max() > 0.05
    digits_page.shot("slider")

    # Between two steps, positions are between theirs.
    slider.fill("4")
    until_drawn(digits_page, embeddings[4])
    first = digits_page.positions(NAME)
    slider.fill("5")
    until_drawn(digits_page, embeddings[5])
    second = digits_page.positions(NAME)
    slider.fill("4.25")
    digits_page.until("app.along.value.size === 1")
    until(
        lambda: np.allclose(digits_page.positions(NAME), 0.75 * first + 0.25 * second, atol=1e-5),
        "between",
    )

    slider.fill(str(own_step))
    until(lambda: np.array_equal(digits_page.positions(NAME), own), "the map itself again")
    assert digits_page.js("app.along.value.size") == 0


def test_keys_go_from_step_to_step(digits_page, digits, path):
    _, embeddings, own = kept(digits)
    slider = path.get_by_role("slider")
    slider.focus()
    for key, step in (("ArrowLeft", own - 1), ("ArrowLeft", own - 2), ("ArrowRight", own - 1)):
        slider.press(key)
        assert float(slider.input_value()) == step
        until_drawn(digits_page, embeddings[step])
    slider.press("ArrowRight")
    assert digits_page.js("app.along.value.size") == 0  # the map itself


def test_pointer_finds_the_map_itself_again(digits_page, digits, path):
    _, _, own = kept(digits)
    slider = path.get_by_role("slider")
    box, last = slider.bounding_box(), float(slider.get_attribute("max"))
    x, y = box["x"] + 8, box["y"] + box["height"] / 2  # 8 is half of the thumb
    per_step = (box["width"] - 16) / last
    digits_page.drag([(x + own * per_step, y), (x + 3 * per_step, y)])
    assert digits_page.js("app.along.value.size") == 1
    digits_page.drag([(x + 3 * per_step, y), (round(x + own * per_step) + 1, y)])
    assert float(slider.input_value()) == own
    assert digits_page.js("app.along.value.size") == 0


def test_play_moves_from_the_first_step_and_pauses(digits_page, path):
    own = digits_page.positions(NAME)
    play = path.get_by_role("button", name="Play the path")
    slider = path.get_by_role("slider")
    last = slider.get_attribute("max")
    slider.fill(last)
    play.click()  # from the end it begins anew
    until(
        lambda: 0.5 < float(slider.input_value()) < 0.5 * float(last), "it plays from the beginning"
    )
    moving = digits_page.positions(NAME)
    assert np.abs(moving - own).max() > 0.05
    until(lambda: not np.allclose(digits_page.positions(NAME), moving), "the points move")
    path.get_by_role("button", name="Pause").click()
    stopped = slider.input_value()
    digits_page.rest()
    assert slider.input_value() == stopped
    assert play.is_visible()

    # From a place near the end it plays until there.
    slider.fill(str(float(last) - 1.5))
    play.click()
    until(lambda: slider.input_value() == last, "it has arrived")
    until(play.is_visible, "it can be played again")


def test_rows_can_be_pointed_at_on_the_way(digits_page, path):
    before = digits_page.positions(NAME)
    path.get_by_role("slider").fill("3")
    until(lambda: not np.array_equal(before, digits_page.positions(NAME)), "the step is drawn")
    digits_page.click_row(NAME, 11)
    pinned, places = digits_page.js("app.pinned.value"), digits_page.pixels(NAME)
    assert np.linalg.norm(places[pinned] - places[11]) < 1


def test_inverse_is_that_of_the_map_itself(digits_page, path):
    path.get_by_role("slider").fill("3")
    digits_page.choose_tool("Probe")
    digits_page.plot(NAME).click()
    digits_page.says(
        "The inverse is that of the map itself: move the slider of its path back to it first."
    )
    assert digits_page.js("app.probe.value") is None
