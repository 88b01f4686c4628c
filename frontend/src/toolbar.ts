// Tools of the pointer, what is shown on maps, and the theme.
import type { App, Signal, Tool } from "./app.ts";
import { button, element } from "./dom.ts";
import { THEMES } from "./theme.ts";
import type { Theme, ThemeChoice } from "./theme.ts";

const TOOLS: [Tool, string, string, string][] = [
  ["move", "✥", "Move", "Drag moves a map, a click keeps a row in view (M)"],
  ["lasso", "◌", "Lasso", "Draw around rows to select them; Shift adds, Alt takes out (L). Shift and drag does it with any tool."],
  ["probe", "⌖", "Probe", "See what data belong to a place on the map, by its inverse (P)"],
  ["line", "∿", "Line", "Draw a line to see how data change along it (D)"],
];

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
  const group = `tool-${crypto.randomUUID()}`; // radio buttons of several widgets are apart by their name
  const radios = TOOLS.map(([tool, icon, name, title]) => {
    const input = element("input", { type: "radio", name: group, value: tool, onchange: () => app.tool.set(tool) });
    app.tool.watch((chosen) => (input.checked = chosen === tool));
    return element("label", { title }, input, element("span", { "aria-hidden": "true" }, icon), name);
  });
  return element("div", { class: "tools", role: "radiogroup", "aria-label": "What the pointer does on a map" }, ...radios);
}

function toggle(text: string, title: string, signal: Signal<boolean>): HTMLElement {
  const made = button(text, () => signal.set(!signal.value), { title, class: "toggle" });
  signal.watch((on) => made.setAttribute("aria-pressed", String(on)));
  return made;
}

function themes(theme: ThemeChoice): HTMLElement {
  const options = THEMES.map((each) =>
    element("option", { value: each, selected: each === theme.theme }, each[0]!.toUpperCase() + each.slice(1)));
  const list = element("select", { onchange: () => theme.choose(list.value as Theme) }, ...options);
  return element("label", { class: "theme" }, "Theme ", list);
}
