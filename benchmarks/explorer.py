"""Load test of the explorer beside regl-scatterplot: ``python -m benchmarks.explorer [rows ...]``.

Both draw the same map of 20 clusters, colored by cluster, in the same headless Chromium without a
graphics card, so that rates are lower bounds. The first picture is counted from the request of
the page; the rate is that of pictures while a mouse drags the map; memory is the resident set of
all processes of the browser, and that of our server. Needs `make .venv-browser/.ready`, npm, and
the Chromium of the system; run by .venv-browser/bin/python.
"""

import contextlib
import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from benchmarks.machine import machine
from benchmarks.peers import ENVS

FLAGS = [
    *("--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
RESULTS = Path(__file__).parent / "results" / "explorer.json"
PEER = "regl-scatterplot"
PEER_SCRIPT = """
import createScatterplot from "regl-scatterplot";
const numbers = async (name) => new Float32Array(await (await fetch(name)).arrayBuffer());
const xy = await numbers("xy.bin"), z = await numbers("z.bin"), n = xy.length / 2;
const x = new Float32Array(n), y = new Float32Array(n);
for (let i = 0; i < n; i++) { x[i] = xy[2 * i]; y[i] = xy[2 * i + 1]; }
const canvas = document.querySelector("canvas");
const hex = (k) => ((k * 1234567 + 4000000) % 16777216).toString(16).padStart(6, "0");
const pointColor = [...Array(20).keys()].map((k) => `#${hex(k)}`);
const { width, height } = canvas.getBoundingClientRect();
const plot = createScatterplot({
  canvas, width, height, pointSize: 2, opacityBy: "density", colorBy: "valueA", pointColor,
});
let frames = 0;
plot.subscribe("drawing", () => frames++);
await plot.draw({ x, y, z }, { zDataType: "categorical" });
globalThis.frames = () => frames;
document.body.dataset.ready = "";
"""
PEER_PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>
html, body { margin: 0; height: 100%; } canvas { width: 934px; height: 617px; display: block; }
</style></head><body><canvas></canvas><script type="module" src="bundle.js"></script></body>
</html>"""
SECONDS = 6.0  # of dragging


def main(sizes):
    """Measure both at every size, print a table, keep the figures."""
    found = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "runs": []}
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            X, Y, k = clusters(n)
            for measure in (ours, peer):
                found["runs"].append({"n": n, **measure(Path(folder), X, Y, k)})
                print(json.dumps(found["runs"][-1]), flush=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def clusters(n):
    """Rows of 10 features in 20 clusters, a map of them, and the clusters."""
    rng = np.random.default_rng(0)
    centers = 4 * rng.normal(size=(20, 10))
    k = rng.integers(20, size=n)
    X = (centers[k] + rng.normal(size=(n, 10))).astype(np.float32)
    Y = (centers[k][:, :2] + 0.6 * rng.normal(size=(n, 2))).astype(np.float32)
    return X, Y, k


def ours(folder, X, Y, k):
    """The explorer, with its server."""
    np.savez(folder / "data.npz", X=X, label=k)
    np.save(folder / "map.npy", Y)
    command = [sys.executable, "-m", "manifoldry", "explore", "data.npz", "--map", "map.npy",
               "--no-browser", "--port", "0"]  # fmt: skip
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        link = next(line.strip() for line in server.stdout if line.startswith("http"))
        frames = "document.getElementById('manifoldry-explorer').manifoldry.frames()"
        figures = drive(link, "[data-ready]", frames, (400, 380))
        memory = resident([server.pid]) / 1e6
    finally:
        server.terminate()
        server.wait()
    return {"package": "manifoldry", **figures, "server_mb": round(memory)}


def peer(folder, X, Y, k):
    """regl-scatterplot on a page that reads the same numbers from files."""
    place = folder / "peer"
    place.mkdir()
    span = np.abs(Y - Y.mean(axis=0)).max() * 1.02
    ((Y - Y.mean(axis=0)) / span).astype(np.float32).tofile(place / "xy.bin")
    k.astype(np.float32).tofile(place / "z.bin")
    (place / "index.html").write_text(PEER_PAGE)
    shutil.copy(peer_bundle(), place / "bundle.js")
    handler = functools.partial(_Quiet, directory=str(place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        link = f"http://127.0.0.1:{server.server_port}/"
        figures = drive(link, "body[data-ready]", "globalThis.frames()", (400, 300))
        server.shutdown()
    return {"package": PEER, **figures}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Print nothing."""


def peer_bundle():
    """The peer and the script that uses it in one file, made when first needed."""
    env = ENVS / PEER
    bundle = env / "bundle.js"
    if not bundle.exists():
        env.mkdir(parents=True, exist_ok=True)
        (env / "page.js").write_text(PEER_SCRIPT)
        (env / "package.json").write_text('{"private": true, "type": "module"}')
        run = functools.partial(subprocess.run, cwd=env, check=True)
        run(["npm", "install", "--silent", f"{PEER}@1.16.0", "esbuild@0.28.2"])
        run(["npx", "esbuild", "page.js", "--bundle", "--minify", "--format=esm",
             "--target=es2022", "--outfile=bundle.js"])  # fmt: skip
    return bundle


def drive(link, ready, frames, at):
    """Open a page, wait for its first picture, and drag the map."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=path, args=FLAGS, viewport={"width": 1280, "height": 720}
        )
        page = browser.pages[0]
        start = time.perf_counter()
        page.goto(link)
        page.wait_for_selector(ready, state="attached", timeout=120_000)
        first = time.perf_counter() - start
        time.sleep(2)  # of what both do after the first picture
        before = page.evaluate(frames)
        page.mouse.move(*at)
        page.mouse.down()
        start, i = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS:
            i += 1
            page.mouse.move(at[0] + 60 * np.sin(i / 9), at[1] + 60 * np.cos(i / 7))
        spent = time.perf_counter() - start
        rate = (page.evaluate(frames) - before) / spent
        page.mouse.up()
        memory = resident(browser_processes(profile)) / 1e6
        browser.close()
    return {
        "first_picture_s": round(first, 2),
        "pictures_per_s": round(rate, 1),
        "browser_mb": round(memory),
    }


def browser_processes(profile):
    """Processes whose command line has the folder of the profile, and their children."""
    commands = {}
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(each.name)] = (parent, (each / "cmdline").read_bytes())
    found = {pid for pid, (_, command) in commands.items() if profile.encode() in command}
    while more := {pid for pid, (parent, _) in commands.items() if parent in found} - found:
        found |= more
    return found


def resident(pids):
    """Bytes of proportional memory of processes: shared pages count in part for each."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


if __name__ == "__main__":
    main([int(float(each)) for each in sys.argv[1:]] or [100_000, 1_000_000])
