// Where everything is on the page.
import type { App } from "./app.ts";
import { counted, element } from "./dom.ts";
import { mapChooser } from "./maps/map_chooser.ts";
import { MapGrid } from "./maps/map_grid.ts";
import { sidePanels } from "./side/index.ts";
import { sideColumn } from "./side_column.ts";
import { ThemeChoice } from "./theme.ts";
import { toolbar } from "./toolbar.ts";
import { workStatus } from "./work_status.ts";

const HINT = "Drag moves a map, the wheel zooms, a click keeps a row in view, Shift and drag selects rows.";

/** What tests look at: root.manifoldry. */
export interface Inspection {
  app: App;
  frames: () => number; // pictures of maps that were drawn so far
  positions: (map: string) => Float32Array | null; // as they are on the screen, interleaved
  place: (map: string, row: number) => [number, number] | null; // of a row, in pixels of the window
}

/** Fills the root; returns a function that ends all listeners and frees the graphics context. */
export function layout(root: HTMLElement, app: App): () => void {
  const theme = new ThemeChoice(root, app);
  const grid = new MapGrid(app);
  const chooser = mapChooser(app);
  const { column, separator, toggle } = sideColumn(sidePanels(app), root.clientWidth || window.innerWidth);
  const bar = toolbar(app, { theme, resetAll: () => grid.all.forEach((view) => view.reset()) });
  root.dataset.hosted = app.start.hosted;
  root.replaceChildren(
    element("header", { class: "top" }, heading(app), chooser.root, bar, toggle),
    trouble(app),
    element("div", { class: "middle" }, grid.root, separator, column),
    status(app),
  );
  grid.painter.onReady = () => (root.dataset.ready = "");
  inspect(root, app, grid);
  return () => {
    for (const each of [theme, grid, chooser]) each.close();
  };
}

function heading(app: App): HTMLElement {
  const { title, n, n_features, has_data } = app.start;
  const counts = has_data ? `${counted(n, "row")}, ${counted(n_features, "feature")}` : counted(n, "row");
  // Data without a name are named by their number of rows, which need not be said twice.
  const named = title !== counted(n, "row");
  const heading = element("h1", { title, class: named ? "" : "unseen" }, title);
  return element("div", { class: "heading" }, heading, element("p", {}, counts));
}

function trouble(app: App): HTMLElement {
  const made = element("div", { class: "trouble", role: "alert" });
  app.trouble.watch((text) => {
    made.textContent = text;
    made.hidden = !text;
  });
  return made;
}

function status(app: App): HTMLElement {
  const made = element("div", { class: "status", role: "status", "aria-live": "polite", "data-hint": HINT });
  app.said.watch((text) => (made.textContent = text));
  return element("footer", {}, made, workStatus(app));
}

function inspect(root: HTMLElement, app: App, grid: MapGrid): void {
  const inspection: Inspection = {
    app,
    frames: () => grid.painter.renderer.frames,
    positions: (map) => grid.views.get(map)?.placement.current() ?? null,
    place: (map, row) => {
      const view = grid.views.get(map), at = view?.placement.at(row);
      if (!view || !at) return null;
      const [x, y] = view.camera.toScreen(...at), { left, top } = view.plot.getBoundingClientRect();
      return [left + x, top + y];
    },
  };
  Object.assign(root, { manifoldry: inspection });
}
