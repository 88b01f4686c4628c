// Tools of the pointer, what is shown on maps, and the theme.
import type { App, Signal, Tool } from "./app.ts";
import { button, element, shape, unique } from "./dom.ts";
import { THEMES } from "./theme.ts";
import type { Theme, ThemeChoice } from "./theme.ts";

const TOOLS: [tool: Tool, icon: string, name: string, title: string][] = [
  ["move", "M8 1v14M1 8h14M5.5 3.5 8 1l2.5 2.5M5.5 12.5 8 15l2.5-2.5M3.5 5.5 1 8l2.5 2.5M12.5 5.5 15 8l-2.5 2.5", "Move", "Drag moves a map, a click keeps a row in view (M)"],
  ["lasso", "M5 12.5C1 10.5 .5 2 8 2s9.5 8 1.5 9.5C7 12 4 11 4 12.5S7 15 5.5 15.5", "Lasso", "Draw around rows to select them; Shift adds, Alt takes out (L). Shift and drag does it with any tool."],
  ["probe", "M8 1v4M8 11v4M1 8h4M11 8h4M8 4.5a3.5 3.5 0 1 0 .01 0", "Probe", "See what data belong to a place on the map, by its inverse (P)"],
  ["line", "M1.5 13C5 2 7 4 8 8s4 5 6.5-5", "Line", "Draw a line to see how data change along it (D)"],
];

const NAMES: Record<Theme, string> = { system: "Theme: system", light: "Light", dark: "Dark" };

export interface ToolbarActions {
  theme: ThemeChoice;
  resetAll: () => void;
}

export function toolbar(app: App, { theme, resetAll }: ToolbarActions): HTMLElement {
  return element(
    "div", { class: "toolbar" },
    tools(app),
    toggle("Class names", "Names of classes on the maps, if there are at most 20", app.classNames),
    toggle("Link zoom", "All maps show the same part", app.linkedZoom),
    button("Whole maps", resetAll, { title: "Show all of each map (0, or double click, for one map)" }),
    themes(theme),
  );
}

function tools(app: App): HTMLElement {
  const group = unique("tool"); // radio buttons of several widgets are apart by their name
  const radios = TOOLS.map(([tool, icon, name, title]) => {
    const input = element("input", { type: "radio", name: group, value: tool, onchange: () => app.tool.set(tool) });
    app.tool.watch((chosen) => (input.checked = chosen === tool));
    return element("label", { title }, input, drawn(icon), name);
  });
  app.tool.onChange((chosen) => app.said.set(TOOLS.find(([tool]) => tool === chosen)!.slice(2).join(": ")));
  return element("div", { class: "tools", role: "radiogroup", "aria-label": "What the pointer does on a map" }, ...radios);
}

function drawn(path: string): SVGElement {
  return shape("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, shape("path", { d: path }));
}

function toggle(text: string, title: string, signal: Signal<boolean>): HTMLElement {
  const made = button(text, () => signal.set(!signal.value), { title, class: "toggle" });
  signal.watch((on) => made.setAttribute("aria-pressed", String(on)));
  return made;
}

function themes(theme: ThemeChoice): HTMLElement {
  const options = THEMES.map((each) => element("option", { value: each, selected: each === theme.theme }, NAMES[each]));
  const list = element(
    "select", { "aria-label": "Light or dark", title: "Light or dark", onchange: () => theme.choose(list.value as Theme) }, ...options,
  );
  return list;
}
