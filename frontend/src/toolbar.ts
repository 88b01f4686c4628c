// Tools of the pointer, what is shown on maps, and the theme.
import type { App, Signal, Tool } from "./app.ts";
import { button, element, shape, unique } from "./dom.ts";
import { THEMES } from "./theme.ts";
import type { Theme, ThemeChoice } from "./theme.ts";

// Paths of drawings in a square of 16 × 16.
const ICONS = {
  move: "M8 1v14M1 8h14M5.5 3.5 8 1l2.5 2.5M5.5 12.5 8 15l2.5-2.5M3.5 5.5 1 8l2.5 2.5M12.5 5.5 15 8l-2.5 2.5",
  lasso: "M5 12.5C1 10.5 .5 2 8 2s9.5 8 1.5 9.5C7 12 4 11 4 12.5S7 15 5.5 15.5",
  probe: "M8 1v4M8 11v4M1 8h4M11 8h4M8 4.5a3.5 3.5 0 1 0 .01 0",
  line: "M1.5 13C5 2 7 4 8 8s4 5 6.5-5",
  names: "M1.5 2h6.5l6.5 6.5-6 6L2 8ZM5 5.4v.01",
  link: "M6.5 9.5l3-3M7 4.5l2-2a3 3 0 0 1 4.5 4.5l-2 2M9 11.5l-2 2A3 3 0 0 1 2.5 9l2-2",
  whole: "M1.5 5.5v-4h4M10.5 1.5h4v4M14.5 10.5v4h-4M5.5 14.5h-4v-4",
  panels: "M1.5 2.5h13v11h-13ZM10 2.5v11",
};

interface ToolInfo {
  tool: Tool;
  name: string;
  title: string;
}

const TOOLS: ToolInfo[] = [
  { tool: "move", name: "Move", title: "Drag moves a map, a click keeps a row in view (M)" },
  {
    tool: "lasso", name: "Lasso",
    title: "Draw around rows to select them; Shift adds, Alt takes out (L). Shift and drag does it with any tool.",
  },
  { tool: "probe", name: "Probe", title: "See what data belong to a place on the map, by its inverse (P)" },
  { tool: "line", name: "Line", title: "Draw a line to see how data change along it (D)" },
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
    toggle("Class names", "names", "Names of classes on the maps, if there are at most 20", app.classNames),
    toggle("Link zoom", "link", "All maps show the same part", app.linkedZoom),
    iconButton("Whole maps", "whole", resetAll, { title: "Show all of each map (0, or double click, for one map)" }),
    themes(theme),
  );
}

function tools(app: App): HTMLElement {
  const group = unique("tool"); // radio buttons of several widgets are apart by their name
  const radios = TOOLS.map(({ tool, name, title }) => {
    const input = element("input", { type: "radio", name: group, value: tool, onchange: () => app.tool.set(tool) });
    app.tool.watch((chosen) => (input.checked = chosen === tool));
    return element("label", { title }, input, ...iconAndWord(tool, name));
  });
  app.tool.onChange((chosen) => {
    const { name, title } = TOOLS.find(({ tool }) => tool === chosen)!;
    app.said.set(`${name}: ${title}`);
  });
  const label = "What the pointer does on a map";
  return element("div", { class: "tools", role: "radiogroup", "aria-label": label }, ...radios);
}

type Icon = keyof typeof ICONS;

/** Where there is little room only the icon is seen; the word is the accessible name then. */
function iconAndWord(icon: Icon, word: string): (SVGElement | HTMLElement)[] {
  const path = shape("path", { d: ICONS[icon] });
  const drawing = shape("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, path);
  return [drawing, element("span", { class: "word" }, word)];
}

export function iconButton(
  word: string, icon: Icon, onclick: () => void, attributes: { class?: string; title: string },
): HTMLButtonElement {
  const made = button("", onclick, attributes);
  made.classList.add("with-icon");
  made.append(...iconAndWord(icon, word));
  return made;
}

function toggle(text: string, icon: Icon, title: string, signal: Signal<boolean>): HTMLElement {
  const made = iconButton(text, icon, () => signal.set(!signal.value), { title, class: "toggle" });
  signal.watch((on) => made.setAttribute("aria-pressed", String(on)));
  return made;
}

function themes(theme: ThemeChoice): HTMLElement {
  const options = THEMES.map((each) => element("option", { value: each, selected: each === theme.theme }, NAMES[each]));
  const label = "Light or dark";
  const onchange = () => theme.choose(list.value as Theme);
  const list = element("select", { "aria-label": label, title: label, onchange }, ...options);
  return list;
}
