// What the colors mean.
import type { App } from "../app.ts";
import { button, counted, element, plain } from "../dom.ts";
import { GRAY, rampRange, rampStops, shownColor } from "../maps/colors.ts";
import type { ClassColor, Color } from "../protocol.ts";
import { buttons, field, paragraph } from "./forms.ts";

type Classes = Extract<Color, { kind: "classes" }>;
type Ramp = Extract<Color, { kind: "values" }>;

const FILTER_ABOVE = 20;
const LISTED = 200;

/** Buttons that hide and show classes. */
export function classLegend(app: App, color: Classes): HTMLElement[] {
  const entries = [...color.classes];
  const missing = color.codes.reduce((count, code) => count + (code >= color.classes.length ? 1 : 0), 0);
  if (missing) entries.push({ name: "missing", count: missing, color: GRAY });
  const list = element("ul", { class: "classes", "aria-label": "Classes" });
  const rest = element("p", { class: "faint" });
  const show = (text: string) => fillList(app, color, entries, text, list, rest);
  show("");
  watchHidden(app, list);
  const all = buttons(
    button("All", () => app.hidden.set(new Set())),
    button("None", () => app.hidden.set(new Set(entries.keys()))),
  );
  const help = paragraph("A click hides or shows a class; a double click shows only this one.", "faint");
  return [...(entries.length > FILTER_ABOVE ? [filterBox(show)] : []), list, rest, all, help];
}

function filterBox(show: (text: string) => void): HTMLElement {
  const oninput = () => show(input.value);
  const input = element("input", { type: "search", placeholder: "part of a class name", oninput });
  return field("Find", input, "inline");
}

function fillList(
  app: App, color: Classes, entries: ClassColor[], text: string, list: HTMLElement, rest: HTMLElement,
): void {
  const wanted = text.trim().toLowerCase();
  const found = [...entries.entries()].filter(([, each]) => each.name.toLowerCase().includes(wanted));
  const listed = found.slice(0, LISTED);
  list.replaceChildren(...listed.map(([index, each]) => classRow(app, color, entries.length, index, each)));
  const more = found.length - LISTED;
  const many = `and ${more.toLocaleString("en-US")} more, which “Find” finds`;
  rest.textContent = more > 0 ? many : found.length ? "" : "No class has this name.";
}

function classRow(app: App, color: Classes, count: number, index: number, entry: ClassColor): HTMLElement {
  const only = () => app.hidden.set(new Set(Array.from({ length: count }, (_, i) => i).filter((i) => i !== index)));
  const toggle = element(
    "button", {
      type: "button", class: "class", "data-index": index, "aria-pressed": String(!app.hidden.value.has(index)),
      onclick: (event) => (event.altKey ? only() : flip(app, index)), ondblclick: only,
    },
    swatch(shownColor(entry.color, app.dark.value)),
    element("span", { class: "class-name", title: entry.name }, entry.name),
    element("span", { class: "count" }, entry.count.toLocaleString("en-US")),
  );
  const select = () => app.select(rowsOf(color, index));
  const rows = counted(entry.count, "row");
  return element(
    "li", {}, toggle,
    button("only", only, { class: "small", "aria-label": `Show only ${entry.name}` }),
    button("select", select, { class: "small", "aria-label": `Select ${rows} of ${entry.name}` }),
  );
}

function flip(app: App, index: number): void {
  const hidden = new Set(app.hidden.value);
  if (!hidden.delete(index)) hidden.add(index);
  app.hidden.set(hidden);
}

/** Codes beyond the last class are those of missing values. */
function rowsOf({ codes, classes }: Classes, index: number): Uint32Array {
  const rows: number[] = [];
  codes.forEach((code, row) => Math.min(code, classes.length) === index && rows.push(row));
  return Uint32Array.from(rows);
}

/** Buttons stay as they are, so that the second click of two finds the same one. */
function watchHidden(app: App, list: HTMLElement): void {
  const stop = app.hidden.onChange((hidden) => {
    if (!list.isConnected) return stop();
    for (const each of list.querySelectorAll<HTMLElement>("button.class")) {
      each.setAttribute("aria-pressed", String(!hidden.has(Number(each.dataset.index))));
    }
  });
}

export function swatch(color: string): HTMLElement {
  const made = element("span", { class: "swatch", "aria-hidden": "true" });
  made.style.background = color;
  return made;
}

/** A bar of colors with the values at its ends. */
export function rampLegend(color: Ramp, dark: boolean): HTMLElement[] {
  const [low, high] = rampRange(color);
  const label = `colors from ${plain(low)} to ${plain(high)}`;
  const bar = element("div", { class: "ramp", role: "img", "aria-label": label });
  const stops = rampStops(color.scale, dark).map(([at, shown]) => `${shown} ${at * 100}%`);
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const ends = element("div", { class: "ends" }, element("span", {}, plain(low)), element("span", {}, plain(high)));
  const missing = color.values.reduce((count, value) => count + (Number.isNaN(value) ? 1 : 0), 0);
  return [
    bar, ends,
    ...(color.note ? [paragraph(color.note, "faint")] : []),
    ...(missing ? [element("p", { class: "faint" }, swatch(GRAY), ` ${counted(missing, "row")} without a value`)] : []),
  ];
}
