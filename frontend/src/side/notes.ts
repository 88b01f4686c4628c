// Notes of the start, and help.
import type { App } from "../app.ts";
import { counted, element } from "../dom.ts";
import { listOf, paragraph } from "./forms.ts";
import { panel } from "./panel.ts";

const KEYS: [string, string][] = [
  ["M", "move: drag a map to pan it, turn the wheel to zoom"],
  ["L", "lasso: draw around points to select them"],
  ["P", "probe: see what the inverse of the map gives at a position"],
  ["D", "line: drag to see how the data change along it"],
  ["arrow keys", "pin the next row in this direction; with the probe, move it"],
  ["Space", "add the pinned row to the selection, or remove it"],
  ["Shift + arrow keys", "pan"],
  ["+   −   0", "zoom in, zoom out, show the whole map"],
  ["Escape", "let go of the probe and the line, then of the pinned row, then of the selection"],
];

export function notesPanel(app: App): HTMLElement {
  const { root, body } = panel("About", "about", false);
  const { notes, n, n_features, has_data, version } = app.start;
  const features = has_data ? counted(n_features, "feature") : "without their data";
  body.append(paragraph(`${counted(n, "row")}, ${features}`));
  if (notes.length) body.append(element("h4", {}, "Notes"), listOf(notes));
  body.append(element("h4", {}, "Keys on a map"), keyList(), paragraph(`manifoldry ${version}`, "faint"));
  return root;
}

function keyList(): HTMLElement {
  const pairs = KEYS.map(([key, text]) =>
    element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, text)));
  return element("dl", { class: "keys" }, ...pairs);
}
