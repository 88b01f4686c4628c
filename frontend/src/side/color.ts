// What the points are colored by.
import { onAny } from "../app.ts";
import type { App } from "../app.ts";
import { button, element } from "../dom.ts";
import type { Color, ColorBy } from "../protocol.ts";
import { computeEvidence } from "./compute.ts";
import { buttons, failure, field, matching, paragraph, suggestingInput } from "./forms.ts";
import { classLegend, rampLegend } from "./legend.ts";
import { panel } from "./panel.ts";

const FEATURES_IN_LIST = 30;

export function colorPanel(app: App): HTMLElement {
  const { root, body } = panel("Color", "color");
  const legend = element("div", { class: "legend" });
  body.append(chooser(app), featureBox(app), legend);
  const refresh = () => void showLegend(app, legend);
  onAny([app.colorBy, app.active, app.dark], refresh);
  followEvidence(app, refresh);
  refresh();
  return root;
}

/** Colors by evidence are asked for again when a map has more of it. */
function followEvidence(app: App, refresh: () => void): void {
  let known = "";
  app.maps.watch((maps) => {
    const before = known;
    known = JSON.stringify(maps.map((map) => [map.id, map.evidence_colors]));
    const by = app.colorBy.value;
    if (!before || known === before || by.by !== "evidence") return;
    app.colorBy.set({ ...by });
    refresh();
  });
}

function chooser(app: App): HTMLElement {
  const select = element("select", { onchange: () => app.colorBy.set(JSON.parse(select.value)) });
  const refresh = () => {
    select.replaceChildren(choice({ by: "nothing" }, "nothing"), ...groups(app));
    select.value = JSON.stringify(app.colorBy.value);
  };
  onAny([app.labels, app.maps, app.colorBy], refresh);
  refresh();
  return field("Color by", select, "inline");
}

function groups(app: App): HTMLElement[] {
  const evidence = [...new Set(app.maps.value.flatMap((map) => map.evidence_colors))];
  const features = offeredFeatures(app);
  const by = app.colorBy.value;
  if (by.by === "feature" && !features.includes(by.name)) features.push(by.name);
  return [
    group("Labels", "label", app.labels.value.map((each) => each.name)),
    group("Evidence of each map", "evidence", evidence),
    group("Features", "feature", features),
  ].filter((each) => each.childElementCount > 0);
}

/** None without data, and none of many, which are found by the search box. */
function offeredFeatures({ start }: App): string[] {
  const few = start.feature_names.length <= FEATURES_IN_LIST;
  return start.has_data && few ? [...start.feature_names] : [];
}

function group(label: string, by: "label" | "evidence" | "feature", names: string[]): HTMLElement {
  return element("optgroup", { label }, ...names.map((name) => choice({ by, name }, name)));
}

function choice(by: ColorBy, text: string): HTMLElement {
  return element("option", { value: JSON.stringify(by) }, text);
}

/** Finds one of many features by its name. */
function featureBox(app: App): HTMLElement {
  const names = app.start.feature_names;
  if (!app.start.has_data || names.length <= FEATURES_IN_LIST) return element("div");
  const { root, input } = suggestingInput("Feature", () => names, "inline");
  input.placeholder = `one of ${names.length.toLocaleString("en-US")} names`;
  const reply = element("div", { role: "status" });
  input.addEventListener("change", () => {
    if (!input.value.trim()) return;
    const name = featureNamed(names, input.value);
    reply.replaceChildren(name === null ? paragraph(`No feature is called “${input.value}”.`, "failure") : "");
    if (name !== null) app.colorBy.set({ by: "feature", name });
  });
  return element("div", {}, root, reply);
}

/** The feature of this name, or the only one that contains it. */
function featureNamed(names: string[], text: string): string | null {
  const wanted = text.trim().toLowerCase();
  const exact = names.find((name) => name === text) ?? names.find((name) => name.toLowerCase() === wanted);
  const similar = matching(names, text, 2);
  return exact ?? (similar.length === 1 ? similar[0]! : null);
}

async function showLegend(app: App, legend: HTMLElement): Promise<void> {
  const by = app.colorBy.value;
  if (by.by === "nothing") {
    legend.replaceChildren();
    return;
  }
  if (by.by === "evidence" && !app.map(app.active.value)?.evidence_colors.includes(by.name)) {
    legend.replaceChildren(...offer(app, by.name));
    return;
  }
  const current = () => app.colorBy.value === by;
  try {
    const map = app.active.value;
    const color = await app.color(map);
    if (current() && map === app.active.value && color) legend.replaceChildren(...explained(app, by, color));
  } catch (error) {
    if (current()) legend.replaceChildren(failure(error));
  }
}

function explained(app: App, by: ColorBy, color: Color): HTMLElement[] {
  if (color.kind === "classes") return classLegend(app, color);
  const legend = rampLegend(color, app.dark.value);
  if (by.by !== "evidence") return legend;
  const whose = `Each map has colors of its own. These are of ${app.map(app.active.value)?.name}.`;
  return [...legend, paragraph(whose, "faint")];
}

/** The map has no such colors yet. */
function offer(app: App, name: string): HTMLElement[] {
  const map = app.map(app.active.value);
  if (!map) return [];
  const status = element("div", { role: "status" });
  const action = button("Compute it", () => computeEvidence(app, map.id, name === "stability", status));
  const why = `Each map has colors of its own. For ${map.name}, ${name} is not known yet.`;
  return [paragraph(why), buttons(action), status];
}
