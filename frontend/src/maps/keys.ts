// Keys on a map that has the focus.
import type { Tool } from "../app.ts";
import type { Point } from "../protocol.ts";
import { letGo, nextRow, pinAndSay, setProbe, togglePinned } from "./actions.ts";
import type { MapView } from "./map_view.ts";

export const KEYS_HELP =
  "Arrow keys go to the next row in that direction, Space adds it to the selection or takes it out. " +
  "Escape lets go of the probe and the line, then of the row, then of the selection. " +
  "Shift and arrow keys move the picture, plus and minus zoom, 0 shows the whole map. " +
  "M, L, P and D choose the tools move, lasso, probe and draw a line. With the probe, arrow keys move it.";

const ARROWS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const TOOLS: Record<string, Tool> = { m: "move", l: "lasso", p: "probe", d: "line" };
const PAN_PX = 60, PROBE_PX = 6;
const ZOOM = 1.3;

export function listenToKeys(view: MapView): void {
  view.plot.addEventListener("keydown", (event) => {
    if (event.target !== view.plot || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!onKey(view, event)) return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has keys of its own
  });
}

/** Whether the key means something here. */
function onKey(view: MapView, event: KeyboardEvent): boolean {
  const { app } = view;
  const arrow = ARROWS[event.key], tool = TOOLS[event.key.toLowerCase()];
  if (arrow) onArrow(view, arrow, event.shiftKey);
  else if (tool) app.tool.set(tool);
  else if (event.key === " ") togglePinned(app);
  else if (event.key === "+" || event.key === "=") view.zoomAt(view.camera.width / 2, view.camera.height / 2, ZOOM);
  else if (event.key === "-") view.zoomAt(view.camera.width / 2, view.camera.height / 2, 1 / ZOOM);
  else if (event.key === "0") view.reset();
  else if (event.key === "Escape") view.drops() || letGo(app);
  else return false;
  return true;
}

function onArrow(view: MapView, arrow: Point, shift: boolean): void {
  if (shift) view.pan(-PAN_PX * arrow[0], PAN_PX * arrow[1]);
  else if (view.app.tool.value === "probe") moveProbe(view, arrow);
  else goToRow(view, arrow);
}

function moveProbe(view: MapView, arrow: Point): void {
  const { app, camera, info } = view;
  const probe = app.probe.value;
  const from: Point = probe?.map === info.id ? probe.at : [camera.x, camera.y];
  const step = PROBE_PX / camera.scale;
  setProbe(app, info, [from[0] + step * arrow[0], from[1] + step * arrow[1]]);
}

/** From the pinned row to the next one; without a pinned row, to the one nearest to the middle. */
function goToRow(view: MapView, arrow: Point): void {
  const { app, placement, camera, visible } = view;
  const from = app.pinned.value >= 0 ? placement.at(app.pinned.value) : null;
  const row = from
    ? nextRow(placement.current(), from, arrow, visible)
    : placement.index.nearest(camera.x, camera.y, Infinity, visible);
  if (row < 0) return app.said.set("There is no row further in this direction");
  const at = placement.at(row)!;
  if (camera.include(...at)) view.moved();
  void pinAndSay(app, row);
}
