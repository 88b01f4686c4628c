// What pointer and keys do on a map, apart from moving its picture.
import type { App } from "../app.ts";
import { NO_ROWS } from "../app.ts";
import { counted } from "../dom.ts";
import type { MapInfo, Point } from "../protocol.ts";
import { rowFacts } from "../side/facts.ts";
import { combined } from "./order.ts";
import type { Combine, Visible } from "./order.ts";
import type { Placement } from "./placement.ts";
import { thinned } from "./polygon.ts";

const MOST_LINE = 200;
const MOST_LASSO = 600;
const ON_ITS_PATH = "The inverse is that of the map itself: move the slider of its path back to it first.";

/** Pins a row and says its name, for keys. */
export async function pinAndSay(app: App, row: number): Promise<void> {
  app.pinned.set(row);
  const facts = await rowFacts(app).get(row).catch(() => null);
  if (!facts || app.pinned.value !== row) return;
  app.said.set([facts.name, ...facts.labels.slice(0, 3).map(([name, value]) => `${name}: ${value}`)].join(", "));
}

export function saySelected(app: App): void {
  const { length } = app.selection.value;
  app.said.set(length ? `${counted(length, "row")} selected` : "Nothing is selected");
}

export function selectInside(app: App, placement: Placement, visible: Visible | null, at: Point[], how: Combine): void {
  const rows = at.length > 2 ? placement.index.inside(thinned(at, MOST_LASSO), visible) : NO_ROWS;
  app.select(combined(app.start.n, app.selection.value, rows, how));
  saySelected(app);
}

/** Adds the pinned row to the selection, or takes it out. */
export function togglePinned(app: App): void {
  const row = app.pinned.value;
  if (row < 0) return;
  const how = app.selection.value.includes(row) ? "remove" : "add";
  app.select(combined(app.start.n, app.selection.value, Uint32Array.of(row), how));
  saySelected(app);
}

/** First the probe and the line, then the pinned row, then the selection. */
export function letGo(app: App): void {
  if (app.probe.value || app.line.value) app.clearInverse();
  else if (app.pinned.value >= 0) app.pinned.set(-1);
  else if (app.selection.value.length) {
    app.select(NO_ROWS);
    saySelected(app);
  }
}

/** Why the inverse cannot be asked for on a map; empty if it can. */
export function whyNoInverse(app: App, info: MapInfo): string {
  if (!info.can_invert) return info.why_not || `${info.name} has no inverse.`;
  if (app.along.value.has(info.id)) return ON_ITS_PATH;
  return "";
}

export function setProbe(app: App, info: MapInfo, at: Point): void {
  const why = whyNoInverse(app, info);
  if (why) app.said.set(why);
  else app.probe.set({ map: info.id, at });
}

export function setLine(app: App, info: MapInfo, at: Point[]): void {
  const why = whyNoInverse(app, info);
  if (why) app.said.set(why);
  else if (at.length > 1) app.line.set({ map: info.id, at: thinned(at, MOST_LINE) });
}

/** The visible row that is next in a direction, within 45 degrees of it; -1 if there is none. */
export function nextRow(xy: Float32Array, from: Point, [dx, dy]: Point, visible: Visible | null): number {
  let best = -1, least = Infinity;
  for (let row = 0; row < xy.length / 2; row++) {
    const x = xy[2 * row]! - from[0], y = xy[2 * row + 1]! - from[1];
    const along = x * dx + y * dy, aside = Math.abs(x * dy - y * dx);
    const distance = along * along + 4 * aside * aside; // straight ahead is preferred
    if (!(along > 0) || aside > along || distance >= least || (visible && !visible(row))) continue;
    least = distance;
    best = row;
  }
  return best;
}
