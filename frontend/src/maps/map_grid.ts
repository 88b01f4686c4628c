// The maps on the page, in equal cells, above the canvas on which their points are drawn.
import { onAny } from "../app.ts";
import type { App } from "../app.ts";
import { element, unique } from "../dom.ts";
import { Painter } from "./painter.ts";
import { KEYS_HELP } from "./keys.ts";
import { MapView } from "./map_view.ts";
import type { Shared } from "./map_view.ts";
import { shuffled } from "./order.ts";
import { Previews } from "./previews.ts";
import { workText } from "../work_status.ts";

/** More maps would be too small. */
export const MOST_SHOWN = 6;
const TITLE_PX = 60; // of a cell, about, that points cannot use

export class MapGrid implements Shared {
  readonly root: HTMLElement;
  readonly shuffled: Uint32Array;
  readonly help = unique("keys");
  readonly views = new Map<string, MapView>();
  readonly painter: Painter;
  private readonly cells = element("div", { class: "cells" });
  private readonly empty = element("p", { class: "empty" });
  private readonly previews: Previews;
  private readonly resized = new ResizeObserver(() => this.arrange());
  private readonly ends: (() => void)[] = [];

  constructor(readonly app: App) {
    this.shuffled = shuffled(app.start.n);
    const canvas = element("canvas", { class: "points", "aria-hidden": "true" });
    const help = element("p", { id: this.help, class: "unseen" }, KEYS_HELP);
    this.root = element("div", { class: "maps" }, canvas, this.cells, this.empty, help);
    this.painter = new Painter(app, canvas, this.shuffled, () => this.all);
    this.previews = new Previews(this, () => this.arrange());
    this.resized.observe(this.cells);
    this.sayEmpty();
    this.listen();
  }

  private listen(): void {
    const { app, painter } = this;
    this.ends.push(
      app.shown.watch(() => this.show()),
      app.maps.onChange((maps) => maps.forEach((info) => this.views.get(info.id)?.update(info))),
      onAny([app.maps, app.jobs], () => this.sayEmpty()),
      app.along.onChange(() => this.views.forEach((view) => void view.positions.show())),
      onAny([app.colorBy, app.hidden, app.selection, app.dark], () => painter.paintAll()),
      onAny(
        [app.hovered, app.hoveredNew, app.pinned, app.placed, app.probe, app.line, app.classNames],
        () => painter.drawAbove(),
      ),
      app.tool.watch((tool) => (this.root.dataset.tool = tool)),
      app.linkedZoom.onChange((linked) => linked && this.moved(this.views.get(app.active.value))),
    );
  }

  private sayEmpty(): void {
    const { maps, jobs } = this.app;
    const choose = "No map is shown. Choose one in the list of maps above.";
    this.empty.textContent = maps.value.length ? choose : `There is no map yet. ${workText(jobs.value)}`;
  }

  /** Maps in the order of the list of all maps, and previews of running jobs. */
  get all(): MapView[] {
    const views = this.app.maps.value.flatMap(({ id }) => this.views.get(id) ?? []);
    return [...views, ...this.previews.views];
  }

  /** Makes and removes panels so that they are those of app.shown. */
  private show(): void {
    const shown = this.app.shown.value.slice(0, MOST_SHOWN);
    for (const [id, view] of this.views) if (!shown.includes(id)) this.remove(id, view);
    for (const id of shown) {
      const info = this.app.map(id);
      if (!info || this.views.has(id)) continue;
      const view = new MapView(this, info);
      this.views.set(id, view);
      void this.painter.paint(view);
    }
    if (shown.length && !shown.includes(this.app.active.value)) this.app.active.set(shown[0]!);
    this.arrange();
  }

  private remove(id: string, view: MapView): void {
    this.views.delete(id);
    view.close();
  }

  /** Chooses the number of columns that makes the maps largest, and measures them. */
  private arrange(): void {
    const views = this.all;
    this.empty.hidden = views.length > 0;
    this.place(views);
    const { clientWidth: width, clientHeight: height } = this.cells;
    const columns = columnsFor(views.length, width, height);
    this.cells.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    this.cells.style.gridTemplateRows = `repeat(${Math.ceil(views.length / columns)}, minmax(0, 1fr))`;
    this.painter.measure(this.root);
  }

  private place(views: MapView[]): void {
    const before = [...this.cells.children];
    if (views.length === before.length && views.every((view, i) => view.root === before[i])) return;
    this.cells.replaceChildren(...views.map((view) => view.root));
    this.resized.disconnect();
    for (const each of [this.cells, ...views.map((view) => view.plot)]) this.resized.observe(each);
  }

  redraw(view: MapView, moving: boolean): void {
    this.painter?.redraw(view, moving); // views draw when they are made, before all is there
  }

  moved(view: MapView | undefined): void {
    if (!view || !this.app.linkedZoom.value) return;
    for (const other of this.all) {
      if (other === view) continue;
      other.camera.look(view.camera.x, view.camera.y, view.camera.zoom);
      this.painter.redraw(other, true);
    }
  }

  close(): void {
    this.resized.disconnect();
    for (const each of this.ends) each();
    this.previews.close();
    for (const view of this.views.values()) view.close();
    this.painter.close();
  }
}

function columnsFor(count: number, width: number, height: number): number {
  const size = (columns: number) => Math.min(width / columns, height / Math.ceil(count / columns) - TITLE_PX);
  let best = 1;
  for (let columns = 2; columns <= count; columns++) if (size(columns) > size(best) + 1) best = columns;
  return best;
}
