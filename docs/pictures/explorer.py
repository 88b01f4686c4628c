"""The pictures of docs/explorer.md: ``.venv-browser/bin/python docs/pictures/explorer.py``.

They show the real page in the Chromium of the system, with digits that scikit-learn brings. `make
test-browser` makes the environment. All pictures take about three minutes.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import cos, pi, sin
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright

IMAGES = Path(__file__).parents[1] / "images"
CHROMIUM = ("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
IS_IDLE = """() => {
  const { jobs } = document.getElementById("manifoldry-explorer").manifoldry.app;
  return jobs.value.length > 0 && jobs.value.every((job) => job.state === "done");
}"""


@contextmanager
def explorer(*args: str) -> Iterator[str]:
    """The link of an explorer that runs in an empty folder."""
    command = [sys.executable, "-m", "manifoldry", "explore", "--no-browser", "--port", "0", *args]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder)
        assert server.stdout is not None
        yield next(line.strip() for line in server.stdout if line.startswith("http"))
        server.terminate()
        server.wait()


def opened(browser: Browser, link: str, scheme: str = "light", width: int = 1280) -> Page:
    """The page when its maps and their evidence are there."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(link)
    page.wait_for_selector("[data-ready]", timeout=60_000)
    page.wait_for_function(IS_IDLE, timeout=600_000)
    page.wait_for_timeout(1000)
    return page


def plot(page: Page, name: str) -> Locator:
    """The picture of a map."""
    return page.locator(f'section.map[aria-label="{name}"] .plot')


def show_only(page: Page, *names: str) -> None:
    """Show some of the maps."""
    page.click("details.menu summary")
    for box in page.locator("details.menu label").all():
        box.locator("input").set_checked(box.inner_text().strip() in names)
    page.keyboard.press("Escape")
    page.wait_for_timeout(500)


def place_of(page: Page, name: str, digit: int) -> tuple[float, float]:
    """Where most rows of a class are, in pixels of the page."""
    xy = page.evaluate(
        """async ([name, digit]) => {
          const { app, place } = document.getElementById("manifoldry-explorer").manifoldry;
          const map = app.maps.value.find((each) => each.name === name);
          const { codes } = await app.ask("color", { by: "label", name: "digit", map: null });
          const rows = [...codes.keys()].filter((row) => codes[row] === digit);
          return rows.map((row) => place(map.id, row));
        }""",
        [name, digit],
    )
    x, y = np.median(xy, axis=0)
    return float(x), float(y)


def choose(page: Page, tool: str) -> None:
    """Choose what the pointer does."""
    page.locator(".tools label", has_text=tool).click()


def drag(page: Page, points: list[tuple[float, float]]) -> None:
    """Drag through some points."""
    page.mouse.move(*points[0])
    page.mouse.down()
    for x, y in points[1:]:
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.wait_for_timeout(1500)


def fold(page: Page, *names: str, wanted: bool) -> None:
    """Open or close panels."""
    for name in names:
        panel = page.locator(f"#{name}")
        if (panel.get_attribute("open") is not None) != wanted:
            panel.locator("> summary").click()
    page.wait_for_timeout(500)


def keep(page: Page, name: str, width: int = 1280, height: int = 800) -> None:
    """Store what is on the screen, with few colors."""
    page.wait_for_timeout(500)
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height})
    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    few = picture.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    few.save(IMAGES / name, optimize=True)


def overview(page: Page) -> None:
    """Rows around those of one digit are selected on one map."""
    choose(page, "Lasso")
    x, y = place_of(page, "t-SNE", 3)
    drag(page, [(x + 40 * cos(k * pi / 12), y + 8 + 40 * sin(k * pi / 12)) for k in range(24)])
    fold(page, "color", "find", "row", wanted=False)
    page.mouse.move(2, 2)
    keep(page, "explorer-overview.png")


def reconstruction(page: Page) -> None:
    """The probe where there are no rows, and a line between digits."""
    fold(page, "color", "find", "row", "selection", wanted=False)
    show_only(page, "Isomap")
    choose(page, "Probe")
    x, y = place_of(page, "Isomap", 0)
    u, v = place_of(page, "Isomap", 3)
    page.mouse.click((x + u) / 2, (y + v) / 2)
    keep(page, "explorer-reconstruction.png")
    page.locator("#reconstruction").get_by_text("Clear").click()
    choose(page, "Line")
    drag(page, [place_of(page, "Isomap", digit) for digit in (0, 6, 4)])
    keep(page, "explorer-line.png")
    page.locator("#reconstruction").get_by_text("Clear").click()
    fold(page, "reconstruction", wanted=False)


def evidence(page: Page) -> None:
    """The panel of one map beside all four."""
    show_only(page, "PCA", "Laplacian eigenmaps", "Isomap", "t-SNE")
    choose(page, "Move")
    plot(page, "Laplacian eigenmaps").focus()
    fold(page, "color", "find", "row", "selection", wanted=False)
    fold(page, "evidence", wanted=True)
    page.locator("#evidence").scroll_into_view_if_needed()
    keep(page, "explorer-evidence.png")


def dark(page: Page) -> None:
    """Colors by trustworthiness in the dark theme."""
    page.locator("#color select").select_option(label="trustworthiness")
    plot(page, "t-SNE").focus()
    x, y = place_of(page, "t-SNE", 3)
    page.mouse.move(x, y)
    page.wait_for_timeout(1500)
    keep(page, "explorer-dark.png")


def film(page: Page, frames: int = 40) -> None:
    """The slider of a homotopy, from its first step to the map itself."""
    page.get_by_role("button", name="Panels", exact=True).click()
    page.wait_for_timeout(500)
    own = page.evaluate(
        'document.getElementById("manifoldry-explorer").manifoldry.app.maps.value[0].own_step'
    )
    slider, shots = page.locator(".path input"), []
    box = page.locator("section.map").bounding_box()
    for at in np.linspace(0, own, frames):
        slider.evaluate(
            "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", at
        )
        page.wait_for_timeout(400)
        shots.append(Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB"))
    times = [700, *[150] * (frames - 2), 2500]
    shots[0].save(IMAGES / "explorer-homotopy.webp", save_all=True, append_images=shots[1:],
                  duration=times, loop=0, quality=60, method=6)  # fmt: skip


def main() -> None:
    """Make all pictures."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=list(CHROMIUM)
        )
        with explorer() as link:
            page = opened(chromium, link)
            overview(page)
            page.get_by_role("button", name="Clear the selection").click()
            reconstruction(page)
            evidence(page)
            page.close()
            dark(opened(chromium, link, "dark"))
        homotopy = ("-m", "elastic-embedding", "--set", "elastic-embedding.optimizer=homotopy")
        with explorer(*homotopy) as link:
            film(opened(chromium, link, width=640))
        chromium.close()


if __name__ == "__main__":
    main()
