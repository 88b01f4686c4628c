// Data from the inverse of a map, one position at a time: its drawing, and how far to trust it.
import { element, plain, shape, twoDigits } from "../dom.ts";
import type { App } from "../app.ts";
import { NEAR_THE_EDGE, OFF_THE_MAP } from "../protocol.ts";
import type { Inverted, Point, RowKind } from "../protocol.ts";
import { drawRow, sparkline } from "./drawing.ts";
import { field } from "./forms.ts";

const LINE_FEATURES = 8;

export type Trust = "good" | "fair" | "poor";
const TRUST_WORDS = { good: "on the map", fair: "near its edge", poor: "off the map: extrapolated" };

export function trustOf(inverted: Inverted, position: number): Trust {
  const distance = inverted.distance[position]!;
  if (distance <= NEAR_THE_EDGE) return "good";
  return distance > OFF_THE_MAP ? "poor" : "fair"; // also if it is not known
}

export function badge(grade: Trust, text: string): HTMLElement {
  return element("span", { class: `badge ${grade}` }, text);
}

/** Whether a position is on the map, in words. */
export function caution(inverted: Inverted, position: number): HTMLElement {
  const grade = trustOf(inverted, position);
  const distance = inverted.distance[position]!;
  if (!Number.isFinite(distance)) return element("p", { class: "caution" }, inverted.cautions[position]);
  const times = `Its distance from the points is ${twoDigits(distance)} times the usual one between them.`;
  return element("p", {}, badge(grade, TRUST_WORDS[grade]), " ", times);
}

/** The data at one position, as a row of its own. */
export function dataAt(inverted: Inverted, position: number): Float64Array {
  const n = inverted.low.length;
  return inverted.data.subarray(position * n, (position + 1) * n);
}

/** Chooses whether rows are drawn as images, curves or tables. */
export function kindChooser(app: App, kind: RowKind, use: (kind: RowKind) => void): HTMLElement {
  const kinds: RowKind[] = app.start.image ? ["image", "curve", "table"] : ["curve", "table"];
  const select = element("select", { onchange: () => use(select.value as RowKind) });
  select.append(...kinds.map((each) => element("option", { value: each, selected: each === kind }, each)));
  return field("Shown as", select, "inline");
}

/** One position as an image, a curve, or a table beside the nearest row. */
export function drawPosition(
  app: App, inverted: Inverted, position: number, kind: RowKind,
): HTMLElement {
  if (kind !== "table") return drawRow(app, dataAt(inverted, position), kind);
  const data = dataAt(inverted, position);
  const features = [...inverted.notable[position]!];
  const n = inverted.low.length, nearest = inverted.nearest_data;
  const heads = ["feature", "here", "range of the data", ...(nearest ? ["nearest row"] : [])];
  const rows = features.map((feature) => {
    const row = featureRow(app, inverted, feature, data[feature]!);
    if (nearest) row.append(element("td", {}, plain(nearest[position * n + feature]!)));
    return row;
  });
  const some = `Of ${n.toLocaleString("en-US")} features, those that are least like the mean of the data.`;
  return element("div", {}, tableOf(heads, rows), n > rows.length && element("p", { class: "faint" }, some));
}

function tableOf(heads: string[], rows: HTMLElement[]): HTMLElement {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  return element("table", { class: "features" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

function featureRow(app: App, inverted: Inverted, feature: number, value: number): HTMLElement {
  const name = app.start.feature_names[feature]!;
  return element(
    "tr", {},
    element("th", { scope: "row", title: name }, name),
    element("td", {}, plain(value)),
    element("td", {}, rangeBar(inverted.low[feature]!, inverted.high[feature]!, value)),
  );
}

/** Where a value is between the smallest and the largest one of the data. */
export function rangeBar(low: number, high: number, value: number): SVGElement {
  const fraction = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5;
  const outside = value < low || value > high;
  const label = `${plain(value)} between ${plain(low)} and ${plain(high)}${outside ? ", outside of the data" : ""}`;
  return shape(
    "svg", { class: "range", viewBox: "0 0 80 12", role: "img", "aria-label": label },
    shape("rect", { class: "track", x: 0, y: 5, width: 80, height: 2 }),
    shape("circle", { class: outside ? "outside" : "mark", cx: 4 + 72 * fraction, cy: 6, r: 4 }),
  );
}

/** Positions that are equally far from each other on a line. */
export function resampled(line: Point[], count: number): Point[] {
  const lengths = line.slice(1).map(([x, y], i) => Math.hypot(x - line[i]![0], y - line[i]![1]));
  const step = lengths.reduce((sum, length) => sum + length, 0) / (count - 1);
  let segment = 0;
  let passed = 0; // length of the segments before this one
  return Array.from({ length: count }, (_, i) => {
    while (segment < lengths.length - 1 && passed + lengths[segment]! < i * step) passed += lengths[segment++]!;
    const [x, y] = line[segment]!, [endX, endY] = line[segment + 1]!;
    const fraction = lengths[segment]! > 0 ? Math.min(1, (i * step - passed) / lengths[segment]!) : 0;
    return [x + (endX - x) * fraction, y + (endY - y) * fraction];
  });
}

/** How the features that change most go along a line. */
export function changes(app: App, inverted: Inverted): HTMLElement {
  const rows = mostChanging(inverted).map((feature) => {
    const name = app.start.feature_names[feature]!;
    const values = alongLine(inverted, feature);
    const [first, last] = [plain(values[0]!), plain(values.at(-1)!)];
    return element(
      "tr", {}, element("th", { scope: "row", title: name }, name), element("td", {}, first),
      element("td", {}, sparkline(values, `${name} from ${first} to ${last}`)), element("td", {}, last),
    );
  });
  return tableOf(["feature", "start", "along the line", "end"], rows);
}

const alongLine = (inverted: Inverted, feature: number): number[] =>
  inverted.cautions.map((_, position) => dataAt(inverted, position)[feature]!);

/** Features by how much of the range of the data they go through. */
function mostChanging(inverted: Inverted): number[] {
  const n = inverted.low.length;
  const smallest = dataAt(inverted, 0).slice();
  const largest = smallest.slice();
  inverted.data.forEach((value, i) => {
    if (value < smallest[i % n]!) smallest[i % n] = value;
    if (value > largest[i % n]!) largest[i % n] = value;
  });
  const range = (feature: number) => inverted.high[feature]! - inverted.low[feature]! || Infinity;
  const change = smallest.map((low, feature) => (largest[feature]! - low) / range(feature));
  return Array.from(change.keys()).sort((a, b) => change[b]! - change[a]!).slice(0, LINE_FEATURES);
}
