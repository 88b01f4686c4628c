"""The explorer as tests use it: its server as a process, and its page in a browser."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np

from manifoldry.explorer.messages import pack, unpack

PATIENCE = 10  # seconds for what should happen at once, on a machine that is busy
FLAGS = (
    "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic",
    # Only the points need WebGL; without a GPU all else is several times as fast without it.
    "--disable-gpu-compositing", "--disable-gpu-rasterization",
)  # fmt: skip


def until(condition, what, patience=PATIENCE):
    """Wait for a condition; returns its value. The page forbids the `wait_for_function` of
    playwright, because it forbids to evaluate text as a script."""
    end = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.02)
    return value


class Server:
    """``manifoldry explore`` as a process of its own."""

    def __init__(self, folder, *arguments, port=0):
        command = [sys.executable, "-m", "manifoldry", "explore", *map(str, arguments)]
        self.errors = (Path(folder) / "server.err").open("w+")
        self.process = subprocess.Popen(
            [*command, "--no-browser", "--port", str(port)], cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=self.errors,
        )  # fmt: skip
        self.link = None
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line):
                self.link, self.port, self.token = found[0], int(found[1]), found[2]
                break
        assert self.link, Path(self.errors.name).read_text()

    @property
    def socket(self):
        return f"ws://127.0.0.1:{self.port}/socket?token={self.token}"

    def ask(self, action, **arguments):
        """A request as the page makes it, by another program; returns the reply or the error."""
        from websockets.sync.client import connect

        with connect(self.socket, max_size=None) as websocket:
            websocket.send(pack({"id": 1, "ask": action, "with": arguments}))
            while True:
                message = unpack(websocket.recv(timeout=PATIENCE))
                if message.get("id") == 1:
                    return message["reply"] if "reply" in message else message["error"]

    def cancel_all(self):
        """End all work in the background."""
        for job in self.ask("start")["jobs"]:
            self.ask("cancel", job=job["id"])

    def stop(self, how=signal.SIGINT):
        """End it as Ctrl-C does; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.errors.close()
        return code


class ExplorerPage:
    """One page of the explorer in a browser."""

    def __init__(self, context, link=None):
        self.page = context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.errors, self.expected = [], []
        self.sent, self.received = [], []
        self.home = None  # where some rows are if nothing was moved
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(f"error: {error}"))
        self.page.on("websocket", self._on_socket)
        if link is not None:
            self.open(link)

    def _on_console(self, message):
        if message.type in ("error", "warning") and not message.location["url"].endswith(
            "favicon.ico"
        ):
            self.errors.append(f"{message.type}: {message.text}")

    def _on_socket(self, socket):
        socket.on("framesent", lambda frame: self.sent.append(unpack(frame)))
        socket.on("framereceived", lambda frame: self.received.append(unpack(frame)))

    def check_errors(self):
        """No error or warning of the browser, except those that a test has provoked."""
        expected = "|".join(self.expected)
        # The software renderer says this when a test reads pixels; it is not about the page.
        known = [each for each in self.errors if "GPU stall due to ReadPixels" in each]
        found = [each for each in self.errors if not (expected and re.search(expected, each))]
        found = [each for each in found if each not in known]
        self.errors.clear()
        self.expected.clear()
        assert not found, "\n".join(found)

    def open(self, link):
        self.page.goto(link)
        self.wait_until_drawn()

    def reload(self):
        self.page.reload()
        self.wait_until_drawn()

    def wait_until_drawn(self):
        self.page.locator("#manifoldry-explorer[data-ready]").wait_for()

    # What it shows

    def js(self, expression, argument=None):
        """The value of an expression of `app`, `positions`, `place`, `frames` and `argument`."""
        return self.page.evaluate(
            "(argument) => { const { app, positions, place, frames } ="
            " document.getElementById('manifoldry-explorer').manifoldry;"
            f" return ({expression}); }}",
            argument,
        )

    def until(self, expression, what=None, argument=None):
        return until(lambda: self.js(expression, argument), what or expression)

    def maps(self):
        """Identifiers of maps by name."""
        return self.js("Object.fromEntries(app.maps.value.map(m => [m.name, m.id]))")

    def positions(self, name):
        """Where the rows are on a map, in [-1, 1]."""
        return np.array(self.js("[...positions(argument)]", self.maps()[name])).reshape(-1, 2)

    def pixels(self, name):
        """Where the rows are in the window."""
        places = "Array.from({ length: app.start.n }, (_, row) => place(argument, row))"
        return np.array(self.js(places, self.maps()[name]))

    def plot(self, name):
        """The area of a map in which its points are."""
        return self.page.get_by_role("application", name=re.compile(f"^Map {re.escape(name)} of"))

    def selection(self):
        return self.js("[...app.selection.value]")

    @property
    def status(self):
        """What the page says it does, at its lower end."""
        return self.page.locator("footer").get_by_role("status")

    def says(self, text):
        until(lambda: text in self.status.inner_text(), f"the status line says {text!r}")

    def picture(self):
        """The pixels of the window: array of shape (height, width, 3)."""
        from PIL import Image

        self.rest()
        with Image.open(BytesIO(self.page.screenshot())) as image:
            return np.asarray(image.convert("RGB")).astype(int)

    def rest(self):
        """Wait until no picture is drawn for some frames."""
        drawn = -1
        while drawn != (drawn := self.js("frames()")):
            self.page.evaluate(
                "new Promise(done => { let left = 4; const step = () =>"
                " --left ? requestAnimationFrame(step) : done(); step(); })"
            )

    def drawn_above(self, name):
        """Pixels of the window in which something is drawn above the points: array of (x, y)."""
        places = (
            self.plot(name)
            .locator(":scope > canvas")
            .evaluate(
                "(canvas) => { const { width, height } = canvas;"
                " const copy = new OffscreenCanvas(width, height);"
                " const pen = copy.getContext('2d', { willReadFrequently: true });"
                " pen.drawImage(canvas, 0, 0);"
                " const { data } = pen.getImageData(0, 0, width, height), found = [];"
                " for (let i = 0; i < width * height; i++) if (data[4 * i + 3]) found.push(i);"
                " return { found, width }; }"
            )
        )
        y, x = np.divmod(np.array(places["found"], dtype=int), places["width"])
        box = self.plot(name).bounding_box()
        return np.column_stack([x + box["x"], y + box["y"]]) + 0.5

    def drawn_image(self, image):
        """What an image of gray pixels shows: their brightness."""
        brightness = image.evaluate(
            "(c) => Array.from(c.getContext('2d').getImageData(0, 0, c.width, c.height).data)"
            ".filter((_, i) => i % 4 === 0)"
        )
        return np.array(brightness)

    # What people do

    def panel(self, title):
        """A part of the side column, opened by a click on its title if it is folded."""
        found = self.page.locator("details.panel").filter(
            has=self.page.locator("summary", has_text=re.compile(f"^{title}$"))
        )
        if found.get_attribute("open") is None:
            found.locator(":scope > summary").click()
        return found

    def choose_tool(self, name):
        self.page.get_by_role("radio", name=name).check()

    def toggle(self, name, on):
        """A button of the toolbar that is on or off."""
        button = self.page.get_by_role("button", name=name, exact=True)
        if (button.get_attribute("aria-pressed") == "true") != on:
            button.click()

    def color_by(self, text):
        self.page.get_by_label("Color by").select_option(label=text)

    def hover(self, name, row):
        self.page.mouse.move(*self.pixels(name)[row])

    def click_row(self, name, row):
        self.page.mouse.click(*self.pixels(name)[row])

    def drag(self, points, *keys):
        """Draw a line with the pointer while keys are held."""
        mouse = self.page.mouse
        with self.held(*keys):
            mouse.move(*points[0])
            mouse.down()
            for point in points[1:]:
                mouse.move(*point, steps=3)
            mouse.up()

    @contextmanager
    def held(self, *keys):
        for key in keys:
            self.page.keyboard.down(key)
        yield
        for key in keys:
            self.page.keyboard.up(key)

    def drop(self, name, content, onto="body"):
        """Drop a file on an element, as from a file manager."""
        transfer = self.page.evaluate_handle(
            "([name, bytes]) => { const transfer = new DataTransfer();"
            " transfer.items.add(new File([new Uint8Array(bytes)], name)); return transfer; }",
            [name, list(content)],
        )
        for event in ("dragenter", "dragover", "drop"):
            self.page.dispatch_event(onto, event, {"dataTransfer": transfer})

    def replies(self, action):
        """Replies to all requests of an action so far."""
        self.page.evaluate("0")  # messages are taken note of while playwright is at work
        asked = {each["id"] for each in self.sent if each.get("ask") == action}
        return [
            each["reply"] for each in self.received if each.get("id") in asked and "reply" in each
        ]

    def reset(self):
        """As after it was opened, without loading it again."""
        self.page.mouse.move(2, 2)
        self.js(RESET, PANELS_OPEN)
        places = self.js(
            "app.maps.value.slice(0, 4).map((map) => [place(map.id, 0), place(map.id, 1)])"
        )
        if self.home != places and self.home is not None:
            self.page.get_by_role("button", name="Whole maps").click()
            self.rest()
        self.home = places if self.home is None else self.home
        for each in (self.errors, self.sent, self.received):
            each.clear()

    def shot(self, name, show=None):
        """A picture of the window for people, if they ask for it by MANIFOLDRY_SCREENSHOTS."""
        if folder := os.environ.get("MANIFOLDRY_SCREENSHOTS"):
            if show is not None:
                show.evaluate("(element) => element.scrollIntoView()")
            self.rest()
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png")


PANELS_OPEN = ["color", "find", "row"]
# Only what differs is set, as every change draws all maps again.
RESET = """(() => {
  const change = (signal, value) =>
    JSON.stringify(signal.value) === JSON.stringify(value) || signal.set(value);
  change(app.shown, app.maps.value.slice(0, 4).map((map) => map.id));
  change(app.active, app.shown.value[0]);
  const [label] = app.start.labels;
  change(app.colorBy, label ? { by: "label", name: label.name } : { by: "nothing" });
  if (app.selection.value.length) app.select(new Uint32Array(0));
  if (app.hidden.value.size) app.hidden.set(new Set());
  if (app.along.value.size) app.along.set(new Map());
  for (const each of [app.hovered, app.pinned]) each.set(-1);
  for (const each of [app.probe, app.line, app.placed]) each.set(null);
  app.tool.set("move");
  app.classNames.set(true);
  app.linkedZoom.set(false);
  app.said.set("");
  const all = (selector) => [...document.querySelectorAll(selector)];
  for (const each of all("aside input, aside textarea")) each.value = each.defaultValue;
  for (const each of all("details.panel")) each.open = argument.includes(each.id);
  for (const each of all("details.menu")) each.open = false;
  document.querySelector("aside").scrollTop = 0;
  document.activeElement?.blur();
})()"""


def placed_in(points, drawn, tolerance=1e-5):
    """The affine map (matrix, offset) that places points where they are drawn."""
    design = np.column_stack([points, np.ones(len(points))])
    found = np.linalg.lstsq(design, drawn, rcond=None)[0]
    assert np.abs(design @ found - drawn).max() < tolerance
    return found[:2], found[2]
