// What the inverse of a map gives at a position, or along a line.
import type { App } from "../app.ts";
import { button, element, twoDigits } from "../dom.ts";
import type { Inverted, Point, RowKind } from "../protocol.ts";
import { drawCurves, drawRow } from "./drawing.ts";
import { factsCard, rowFacts } from "./facts.ts";
import { buttons, failure, paragraph } from "./forms.ts";
import { badge, caution, changes, dataAt, drawPosition, kindChooser, resampled, trustOf } from "./inverted.ts";
import { panel, reveal, whileOpen } from "./panel.ts";
import type { Panel } from "./panel.ts";
import { newest } from "./requests.ts";

const LINE_POSITIONS = 12;
const HOW =
  "Choose the probe (P) and click or drag on a map to see what its inverse gives there, " +
  "or the line (D) to see how the data change along a line.";
const PIN_HOW = "Numbers are distances from the map. Click one to pin the row that is nearest there.";

interface Wanted {
  map: string;
  at: Point[];
  kind: "position" | "line";
}

export function reconstructionPanel(app: App): HTMLElement {
  const made = panel("Reconstruction", "reconstruction", false);
  let kind = app.start.row_kind;
  let last: { inverted: Inverted; wanted: Wanted } | null = null;

  const drawn = element("div", { class: "reconstruction" });
  const chooser = kindChooser(app, kind, (chosen) => {
    kind = chosen;
    if (last) show(last.inverted, last.wanted);
  });
  const controls = element("div", { class: "controls" }, chooser, buttons(button("Clear", () => app.clearInverse())));

  const show = (inverted: Inverted, wanted: Wanted) => {
    last = { inverted, wanted };
    if (wanted.kind === "line") drawn.replaceChildren(...alongLine(app, inverted, kind));
    else void atPosition(app, inverted, kind, drawn);
  };
  const follower = newest(
    (wanted: Wanted) => app.ask("invert", { map: wanted.map, at: wanted.at }),
    show,
    (error) => drawn.replaceChildren(failure(error)),
  );
  const refresh = whileOpen(made, () => {
    const wanted = latest();
    const why = wanted ? whyNot(app, wanted.map) : HOW;
    controls.hidden = !wanted;
    chooser.hidden = why !== "";
    if (wanted && !why) return follower.follow(wanted);
    follower.drop();
    last = null;
    drawn.replaceChildren(paragraph(why, "faint"));
  });
  const latest = latestWanted(app);
  followSignals(app, refresh);
  revealOnce(app, made);
  made.body.append(drawn, controls);
  refresh();
  return made.root;
}

/** Shows the panel when there is a probe or a line after there was none. */
function revealOnce(app: App, made: Panel): void {
  let empty = true;
  const changed = () => {
    const before = empty;
    empty = !app.probe.value && !app.line.value;
    if (before && !empty) reveal(made);
  };
  app.probe.onChange(changed);
  app.line.onChange(changed);
}

function followSignals(app: App, refresh: () => void): void {
  app.probe.onChange(refresh);
  app.line.onChange(refresh);
  let shape = "";
  app.maps.watch((maps) => {
    const before = shape;
    shape = JSON.stringify(maps.map((map) => [map.id, map.redrawn]));
    if (before && before !== shape) refresh();
  });
}

/** The probe or the line, whichever was set last. */
function latestWanted(app: App): () => Wanted | null {
  let lineIsLast = app.line.value !== null;
  app.probe.onChange((probe) => (lineIsLast = !probe));
  app.line.onChange((line) => (lineIsLast = line !== null));
  return () => (lineIsLast ? alongOf(app) ?? atOf(app) : atOf(app) ?? alongOf(app));
}

function atOf(app: App): Wanted | null {
  const probe = app.probe.value;
  return probe && { map: probe.map, at: [probe.at], kind: "position" };
}

function alongOf(app: App): Wanted | null {
  const line = app.line.value;
  return line && line.at.length > 1 ? { map: line.map, at: resampled(line.at, LINE_POSITIONS), kind: "line" } : null;
}

function whyNot(app: App, id: string): string {
  const map = app.map(id);
  if (!map) return "This map was removed.";
  if (map.can_invert) return "";
  return map.why_not || "This map has no inverse.";
}

/** Shows the position at once, and the nearest row beside it when its facts are known. */
async function atPosition(app: App, inverted: Inverted, kind: RowKind, drawn: HTMLElement): Promise<void> {
  const row = inverted.nearest[0]!;
  const position = drawPosition(app, inverted, 0, kind);
  const here = element("div", { class: "here" }, element("h4", {}, "At this position"), position);
  const beside = element("div", { class: "beside" }, element("h4", {}, "Nearest row"));
  const pair = element("div", { class: kind === "image" ? "side-by-side" : "" }, here, beside);
  drawn.replaceChildren(caution(inverted, 0), pair);
  try {
    const facts = await rowFacts(app).get(row);
    const short = kind !== "curve" || app.start.row_kind === "image";
    beside.append(factsCard(app, facts, short), buttons(button("Pin it", () => app.pinned.set(row))));
  } catch (error) {
    beside.append(failure(error));
  }
}

function alongLine(app: App, inverted: Inverted, kind: RowKind): HTMLElement[] {
  const count = inverted.cautions.length;
  const off = inverted.cautions.filter((_, i) => trustOf(inverted, i) === "poor").length;
  const positions = inverted.cautions.map((_, i) => positionOnLine(app, inverted, i, kind));
  const strip = element("div", { class: "strip" }, ...positions);
  const help = paragraph(PIN_HOW, "faint");
  return [paragraph(lineText(off, count)), ...overview(app, inverted, kind), strip, help];
}

function lineText(off: number, count: number): string {
  if (!off) return `${count} positions along the line, all on the map or near its edge.`;
  const are = off === 1 ? "is off the map, so it is" : "are off the map, so they are";
  return `${off} of ${count} positions along the line ${are} extrapolated.`;
}

function overview(app: App, inverted: Inverted, kind: RowKind): HTMLElement[] {
  if (kind === "table") return [changes(app, inverted)];
  if (kind === "image") return [];
  const curves = drawCurves(inverted.cautions.map((_, i) => dataAt(inverted, i)));
  return [curves, paragraph("The first curve is the faintest.", "faint")];
}

function positionOnLine(app: App, inverted: Inverted, position: number, kind: RowKind): HTMLElement {
  const distance = twoDigits(inverted.distance[position]!);
  const where = inverted.cautions[position] || `on the map, distance ${distance}`;
  const label = `position ${position + 1} of ${inverted.cautions.length}: ${where}`;
  const pin = () => app.pinned.set(inverted.nearest[position]!);
  return element(
    "button", {
      type: "button", class: "position", onclick: pin, title: label, "aria-label": `${label}; pins the nearest row`,
    },
    kind === "image" && drawRow(app, dataAt(inverted, position), "image", 56),
    badge(trustOf(inverted, position), distance),
  );
}
