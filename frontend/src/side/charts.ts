// Charts of evidence. Each says in words what it shows, as not everybody sees it.
import { counted, element, plain, shape } from "../dom.ts";
import type { Evidence } from "../protocol.ts";

const WIDTH = 280;
const HEIGHT = 130;
const LEFT = 34;
const BOTTOM = 30;
const TOP = 8;
const RIGHT = 8;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT;
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;

interface Axis {
  title: string;
  ticks: [number, string][]; // fractions of the axis, and their text
}

/** A drawing with axes, in which fractions from 0 to 1 are turned into places. */
function chart(title: string, label: string, x: Axis, y: Axis, ...marks: SVGElement[]): HTMLElement {
  const drawing = shape("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  drawing.append(...marks, ...horizontal(x), ...vertical(y));
  return element("figure", {}, element("figcaption", {}, title), drawing);
}

const across = (fraction: number): number => LEFT + PLOT_WIDTH * fraction;
const up = (fraction: number): number => TOP + PLOT_HEIGHT * (1 - fraction);

function horizontal({ title, ticks }: Axis): SVGElement[] {
  return [
    line(0, 0, 1, 0, "axis"),
    ...ticks.map(([at, text]) => shape("text", { x: across(at), y: up(0) + 12, class: anchor(at) }, text)),
    shape("text", { x: across(0.5), y: HEIGHT - 5, class: "axis-title" }, title),
  ];
}

function vertical({ title, ticks }: Axis): SVGElement[] {
  const turn = `rotate(-90 8 ${up(0.5)})`;
  return [
    line(0, 0, 0, 1, "axis"),
    ...ticks.map(([at, text]) => shape("text", { x: LEFT - 4, y: up(at) + 3, class: "end" }, text)),
    shape("text", { x: 8, y: up(0.5) + 3, transform: turn, class: "axis-title" }, title),
  ];
}

const anchor = (at: number): string => (at <= 0 ? "start" : at >= 1 ? "end" : "middle");

function line(x1: number, y1: number, x2: number, y2: number, kind: string): SVGElement {
  return shape("line", { class: kind, x1: across(x1), y1: up(y1), x2: across(x2), y2: up(y2) });
}

function bar(index: number, count: number, height: number, kind: string): SVGElement {
  const width = PLOT_WIDTH / count;
  return shape("rect", {
    class: `bar ${kind}`, x: LEFT + width * (index + 0.12), width: width * 0.76,
    y: up(height), height: PLOT_HEIGHT * height,
  });
}

/** Values of a spectrum; the map keeps those before the gap. */
export function spectrumChart({ values, kept, title }: NonNullable<Evidence["spectrum"]>): HTMLElement {
  const most = Math.max(...values, 0) || 1;
  const bars = values.map((value, i) => bar(i, values.length, Math.max(0, value) / most, i < kept ? "kept" : "other"));
  const edge = kept / values.length;
  const gap = edge > 0 && edge < 1 ? [line(edge, 0, edge, 1, "threshold")] : [];
  const next = kept < values.length ? `; the next one is ${plain(values[kept]!)}` : "";
  const first = values.slice(0, kept).map(plain).join(", ");
  const label = `${title}: ${values.length} values. The map keeps ${kept}: ${first}${next}.`;
  const x = { title: `component; the map keeps ${kept}`, ticks: numbered(values.length) };
  return chart(title, label, x, { title: "value", ticks: [[0, "0"], [1, short(most)]] }, ...bars, ...gap);
}

/** The part of each coordinate that those before it do not predict. */
export function redundancyChart(parts: number[], threshold: number): HTMLElement {
  const bars = parts.map((part, i) => bar(i, parts.length, clipped(part), part < threshold ? "warn" : "kept"));
  const few = parts.flatMap((part, i) => (part < threshold ? [`coordinate ${i + 1}`] : []));
  const verdict = few.length ? `Redundant: ${few.join(", ")}.` : "No coordinate is redundant.";
  const label = `New part of each coordinate: ${parts.map(plain).join(", ")}. ${verdict}`;
  const y = { title: "new part", ticks: [[0, "0"], [1, "1"]] as Axis["ticks"] };
  const x = { title: `coordinate; below ${plain(threshold)} it is redundant`, ticks: numbered(parts.length) };
  return chart("What each coordinate adds", label, x, y, ...bars, line(0, threshold, 1, threshold, "threshold"));
}

/** Distances on the map against those in the data, as counts of pairs. */
export function shepardChart(shepard: NonNullable<Evidence["shepard"]>): HTMLElement {
  const { counts, bins, data_max, map_max, correlation } = shepard;
  const most = Math.sqrt(counts.reduce((a, b) => Math.max(a, b), 1));
  const cells: SVGElement[] = [];
  counts.forEach((count, i) => {
    if (!count) return;
    const place = { x: across((i % bins) / bins), y: up((Math.floor(i / bins) + 1) / bins) };
    const size = { width: PLOT_WIDTH / bins, height: PLOT_HEIGHT / bins };
    cells.push(shape("rect", { class: "cell", ...place, ...size, opacity: 0.08 + (0.92 * Math.sqrt(count)) / most }));
  });
  const label =
    `Shepard diagram: distances on the map against distances in the data; their correlation is ${plain(correlation)}.`;
  const x = { title: "distance in the data", ticks: [[0, "0"], [1, short(data_max)]] as Axis["ticks"] };
  const y = { title: "on the map", ticks: [[0, "0"], [1, short(map_max)]] as Axis["ticks"] };
  return chart(`Shepard diagram, correlation ${plain(correlation)}`, label, x, y, ...cells);
}

/** The part of neighbors that is kept beyond chance, R_NX, for neighborhoods of all sizes. */
export function corankingChart({ sizes, kept, area }: NonNullable<Evidence["coranking"]>): HTMLElement {
  const [first, last] = [sizes[0]!, sizes.at(-1)!];
  const place = (size: number) => Math.log(size / first) / (Math.log(last / first) || 1);
  const low = Math.min(0, ...kept);
  const height = (value: number) => (value - low) / (1 - low);
  const points = sizes.map((size, i) => `${across(place(size)).toFixed(1)} ${up(height(kept[i]!)).toFixed(1)}`);
  const curve = shape("path", { class: "curve", d: `M${points.join("L")}` });
  const best = kept.indexOf(Math.max(...kept));
  const label =
    `Neighbors kept beyond chance, R_NX: area ${plain(area)}; ${plain(kept[0]!)} for ${counted(first, "neighbor")}, ` +
    `at most ${plain(kept[best]!)} for ${sizes[best]}.`;
  const ticks = powers(first, last).map((size): [number, string] => [place(size), String(size)]);
  const x = { title: "number of neighbors (log scale)", ticks };
  const y = { title: "R_NX", ticks: [[height(0), "0"], [1, "1"]] as Axis["ticks"] };
  return chart(`Neighbors kept beyond chance, area ${plain(area)}`, label, x, y, curve);
}

const clipped = (part: number): number => Math.min(1, Math.max(0, part));

/** Numbers below bars: all if they fit, else the first and the last. */
function numbered(count: number): Axis["ticks"] {
  const all = Array.from({ length: count }, (_, i): [number, string] => [(i + 0.5) / count, String(i + 1)]);
  return count <= 12 ? all : [all[0]!, all.at(-1)!];
}

function powers(first: number, last: number): number[] {
  return [1, 10, 100, 1000, 10_000, 100_000].filter((size) => size >= first && size <= last);
}

/** Two digits, as there is little room. */
function short(value: number): string {
  if (value !== 0 && value < 1e-3) return value.toExponential(1);
  const notation = value >= 1e4 ? "compact" : "standard";
  return value.toLocaleString("en-US", { maximumSignificantDigits: 2, notation });
}
