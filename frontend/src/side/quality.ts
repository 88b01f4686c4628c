// Metrics of one map, and of several side by side.
import { element, plain } from "../dom.ts";
import type { Evidence, Metric } from "../protocol.ts";

/** A value, and its interval if it was estimated from some of the rows. */
function valued({ value, low, high }: Metric): string {
  const interval = low !== null && high !== null ? ` (${plain(low)} to ${plain(high)})` : "";
  return plain(value) + interval;
}

function better({ larger_is_better: larger }: Metric): HTMLElement | null {
  if (larger === null) return null;
  const text = larger ? "larger is better" : "smaller is better";
  const arrow = element("span", { "aria-hidden": "true" }, larger ? "↑" : "↓");
  return element("span", { title: text }, arrow, element("span", { class: "unseen" }, text));
}

export function metricsTable(metrics: Metric[]): HTMLElement {
  const rows = metrics.map((each) => element(
    "tr", {}, element("th", { scope: "row", title: each.help }, each.title),
    element("td", {}, valued(each)), element("td", { class: "faint" }, better(each)),
  ));
  return element("div", {}, element("table", { class: "metrics" }, element("tbody", {}, ...rows)), meanings(metrics));
}

function meanings(metrics: Metric[]): HTMLElement {
  const pairs = metrics.flatMap(({ title, help }) => [element("dt", {}, title), element("dd", {}, help)]);
  const title = element("summary", {}, "What these mean");
  return element("details", { class: "meanings" }, title, element("dl", {}, ...pairs));
}

/** One line per metric and one column per map; the best value of each line is marked. */
export function qualityTable(columns: { name: string; evidence: Evidence }[]): HTMLElement {
  const all = columns.flatMap(({ evidence }) => evidence.metrics);
  const metrics = new Map(all.map((each) => [each.name, each]));
  const heads = columns.map(({ name }) => element("th", { scope: "col", title: name }, name));
  const head = element("tr", {}, element("th", { scope: "col" }, "metric"), ...heads);
  const rows = [...metrics.values()].map((metric) => qualityRow(metric, columns.map(({ evidence }) => evidence)));
  const made = element(
    "table", { class: "quality" }, element("caption", {}, "★ marks the best map of each line"),
    element("thead", {}, head), element("tbody", {}, ...rows),
  );
  return element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Metrics of the maps" }, made);
}

function qualityRow(metric: Metric, evidences: Evidence[]): HTMLElement {
  const values = evidences.map((evidence) => evidence.metrics.find((each) => each.name === metric.name)?.value ?? null);
  const best = bestOf(values, metric.larger_is_better);
  const head = element("th", { scope: "row", title: metric.help }, metric.title);
  return element("tr", {}, head, ...values.map((value) => qualityCell(value, best)));
}

function qualityCell(value: number | null, best: number | null): HTMLElement {
  const text = plain(value === null ? null : Number(value.toPrecision(3)));
  if (value === null || value !== best) return element("td", {}, text);
  const star = element("span", { "aria-hidden": "true" }, " ★");
  return element("td", { class: "best" }, text, star, element("span", { class: "unseen" }, " best"));
}

/** Null if the values do not tell which map is best. */
export function bestOf(values: (number | null)[], largerIsBetter: boolean | null): number | null {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  if (largerIsBetter === null || known.length < 2 || low === high) return null;
  return largerIsBetter ? high : low;
}
