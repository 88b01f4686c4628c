// Rows that were placed on the maps: their names, and how much they are like the data.
import type { App } from "../app.ts";
import { button, element, shape, twoDigits } from "../dom.ts";
import { newColor } from "../maps/colors.ts";
import { UNLIKE } from "../protocol.ts";
import type { Placed } from "../protocol.ts";
import { paragraph } from "./forms.ts";

const LISTED = 100;
const UNKNOWN = "These maps do not know how much new rows are like the data they were fitted to.";

/** Python sends only the first names of many rows. */
function nameOf({ names }: Placed, row: number): string {
  return names[row] ?? `row ${(row + 1).toLocaleString("en-US")}`;
}

function isUnlike({ novelty }: Placed, row: number): boolean {
  return (novelty?.[row] ?? 0) > UNLIKE;
}

function unlikeText({ novelty }: Placed, row: number): string {
  const value = novelty![row]!;
  return `unlike the training data (novelty ${twoDigits(value)})`;
}

/** What the tooltip of a diamond says. */
export function newRowCard(placed: Placed, row: number): HTMLElement {
  const caution = isUnlike(placed, row) && element("p", { class: "caution" }, unlikeText(placed, row));
  return element("div", { class: "facts short" }, element("strong", {}, `New: ${nameOf(placed, row)}`), caution);
}

/** How many of the rows are like the data of the maps. */
export function noveltyText({ novelty }: Placed): HTMLElement {
  if (!novelty) return paragraph(UNKNOWN, "faint");
  const count = novelty.length, unlike = novelty.reduce((sum, each) => sum + (each > UNLIKE ? 1 : 0), 0);
  if (!unlike) return paragraph(`${count === 1 ? "It is" : "All are"} like the data that the maps were fitted to.`);
  const some = `${unlike.toLocaleString("en-US")} of them ${unlike === 1 ? "is" : "are"}`;
  const which = unlike < count ? some : count === 1 ? "It is" : "All are";
  const caution = `${which} unlike the data that the maps were fitted to, so do not rely on the positions.`;
  return paragraph(caution, "caution");
}

/** What filled and hollow diamonds mean. */
export function legendOfDiamonds({ novelty }: Placed, dark: boolean): HTMLElement {
  if (!novelty) return element("p", { class: "faint" }, diamond(dark, true), " a new row");
  return element(
    "p", { class: "faint diamonds" },
    element("span", {}, diamond(dark, true), " like the data"),
    element("span", {}, diamond(dark, false), " unlike the data"),
  );
}

function diamond(dark: boolean, filled: boolean): SVGElement {
  const color = newColor(dark);
  const path = shape("path", { d: "M8 2 14 8 8 14 2 8Z", stroke: color, fill: filled ? color : "none" });
  return shape("svg", { class: "diamond", viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}

/** Names, first those of rows that are unlike the data. A name that is pointed at rings its diamond. */
export function listOfNewRows(app: App, placed: Placed, count: number): HTMLElement[] {
  const rows = Array.from({ length: count }, (_, row) => row);
  const novelty = (row: number) => (isUnlike(placed, row) ? placed.novelty![row]! : 0);
  rows.sort((a, b) => novelty(b) - novelty(a) || 0); // the others stay in their order
  const list = element("ul", { class: "new-rows", "aria-label": "New rows" });
  list.append(...rows.slice(0, LISTED).map((row) => entry(app, placed, row)));
  const more = count - LISTED;
  return [list, ...(more > 0 ? [paragraph(`and ${more.toLocaleString("en-US")} more`, "faint")] : [])];
}

function entry(app: App, placed: Placed, row: number): HTMLElement {
  const point = () => app.hoveredNew.set(row);
  const leave = () => app.hoveredNew.set(-1);
  const name = button(nameOf(placed, row), point, {
    title: "Marks its diamond on the maps",
    onfocus: point, onblur: leave, onpointerenter: point, onpointerleave: leave,
  });
  const caution = isUnlike(placed, row) && element("span", { class: "caution" }, unlikeText(placed, row));
  return element("li", {}, name, caution);
}
