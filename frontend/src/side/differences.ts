// What distinguishes selected rows from the others.
import { element, plain, shape } from "../dom.ts";
import type { Difference, Distinguished } from "../protocol.ts";
import { paragraph } from "./forms.ts";

const FEATURES = 12;
const LABELS = 10;

export function differences(found: Distinguished): HTMLElement[] {
  const made = [paragraph(found.text)];
  if (found.features.length) made.push(featureTable(found.features));
  if (found.labels.length) made.push(labelTable(found.labels));
  return made;
}

function table(caption: string, heads: string[], rows: HTMLElement[], more: number): HTMLElement {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const made = element(
    "table", { class: "features" }, element("caption", {}, caption),
    element("thead", {}, head), element("tbody", {}, ...rows),
  );
  const rest = more > 0 && element("p", { class: "faint" }, `and ${more.toLocaleString("en-US")} more`);
  return element("div", {}, made, rest);
}

function featureTable(features: Difference[]): HTMLElement {
  const largest = Math.max(...features.map((each) => Math.abs(each.difference)), 1);
  const rows = features.slice(0, FEATURES).map((each) => element(
    "tr", {}, element("th", { scope: "row", title: each.name }, each.name),
    element("td", {}, differenceBar(each.difference, largest)),
    element("td", {}, plain(each.inside)), element("td", {}, plain(each.outside)),
  ));
  const caption = "Differences of the means, in standard deviations";
  return table(caption, ["feature", "difference", "inside", "outside"], rows, features.length - FEATURES);
}

/** To the right if the selected rows have more, to the left if they have less. */
function differenceBar(difference: number, largest: number): SVGElement {
  const length = (38 * Math.abs(difference)) / largest;
  const less = difference < 0;
  const label = `${plain(Math.abs(difference))} standard deviations ${less ? "less" : "more"}`;
  return shape(
    "svg", { class: "difference", viewBox: "0 0 80 12", role: "img", "aria-label": label },
    shape("title", {}, label),
    shape("rect", { class: "track", x: 39.5, y: 0, width: 1, height: 12 }),
    shape("rect", { class: less ? "less" : "more", x: less ? 40 - length : 40, y: 2, width: length, height: 8 }),
  );
}

function labelTable(labels: Distinguished["labels"]): HTMLElement {
  const rows = labels.slice(0, LABELS).map((each) => element(
    "tr", {}, element("th", { scope: "row", title: `${each.label}: ${each.value}` }, `${each.label}: ${each.value}`),
    element("td", {}, percent(each.inside)), element("td", {}, percent(each.outside)),
  ));
  return table("Part of the rows with this label", ["label", "inside", "outside"], rows, labels.length - LABELS);
}

export function percent(fraction: number): string {
  const value = 100 * fraction;
  return `${value > 0 && value < 1 ? value.toFixed(1) : Math.round(value)}%`;
}
