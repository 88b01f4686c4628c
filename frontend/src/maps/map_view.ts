// One map on the page: its title, its points, what is drawn above them, and its path.
import type { App } from "../app.ts";
import { counted, element } from "../dom.ts";
import type { MapInfo, Point } from "../protocol.ts";
import { Camera } from "./camera.ts";
import { ClassNames } from "./class_names.ts";
import type { Coloring } from "./coloring.ts";
import { Gestures } from "./gestures.ts";
import { listenToKeys } from "./keys.ts";
import type { Order, Visible } from "./order.ts";
import { drawOverlay, newRowAt } from "./overlay.ts";
import type { Draft } from "./overlay.ts";
import { PathBar } from "./path_bar.ts";
import { Placement } from "./placement.ts";
import { pointStyle } from "./point_style.ts";
import { Positions } from "./positions.ts";
import type { Box, Picture } from "./renderer.ts";
import { Tooltip } from "./tooltip.ts";
import { MapTitle } from "./map_title.ts";

const REACH_PX = 12; // how far from a row the pointer may be

/** What all maps of a page share. */
export interface Shared {
  readonly app: App;
  readonly shuffled: Uint32Array;
  readonly help: string; // identifier of the text about keys
  redraw(view: MapView, moving: boolean): void;
  /** The part that is on the screen was changed by hand. */
  moved(view: MapView): void;
}

export class MapView {
  readonly app: App;
  readonly camera = new Camera();
  readonly placement: Placement;
  readonly positions: Positions;
  readonly plot: HTMLElement;
  readonly root: HTMLElement;
  box: Box = { left: 0, top: 0, width: 1, height: 1 };
  visible: Visible | null = null;
  private coloring: Coloring | null = null;
  private order: Order | null = null;
  private readonly classNames = new ClassNames();
  private drawn: Draft | null = null;
  private readonly canvas = element("canvas", { "aria-hidden": "true" });
  private readonly tooltip: Tooltip;
  private readonly title: MapTitle;
  private readonly path: PathBar;
  private readonly note = element("p", { class: "unplaced" });
  private readonly sampleNote = element("p", { class: "sampled", hidden: true });

  /** `isMap` is false for the map of a running job, about which Python cannot be asked. */
  constructor(private readonly shared: Shared, public info: MapInfo, isMap = true) {
    const { app } = shared;
    this.app = app;
    this.placement = new Placement(app.start.n, (moving) => shared.redraw(this, moving));
    this.positions = new Positions(app, info, this.placement);
    this.tooltip = new Tooltip(app);
    this.title = new MapTitle(app, info, isMap);
    this.path = new PathBar(app, info, this.positions);
    this.plot = element(
      "div", { class: "plot", tabindex: 0, role: "application", "aria-describedby": shared.help },
      this.canvas, this.note, this.sampleNote, this.tooltip.root,
    );
    this.root = element(
      "section", { class: "map", "data-map": info.id, "aria-label": info.name },
      this.title.root, this.plot, this.path.root,
    );
    this.plot.addEventListener("focus", () => isMap && app.active.set(info.id));
    new Gestures(this);
    listenToKeys(this);
    this.update(info);
    if (isMap) void this.positions.show();
  }

  update(info: MapInfo): void {
    this.info = info;
    this.title.update(info);
    this.path.update(info);
    this.positions.update(info);
    this.plot.setAttribute("aria-label", `Map ${info.name} of ${counted(this.app.start.n, "row")}`);
    const { n_unplaced: n } = info;
    this.note.hidden = !n;
    this.note.textContent = `${counted(n, "row")} ${n === 1 ? "has" : "have"} no place on this map`;
  }

  paint(coloring: Coloring, order: Order, visible: Visible | null): void {
    if (coloring.color !== this.coloring?.color) this.classNames.update(coloring, this.shared.shuffled);
    Object.assign(this, { coloring, order, visible });
    this.shared.redraw(this, false);
  }

  /** Null until positions and colors have arrived. */
  picture(): Picture | null {
    const { placement, coloring, order, camera, positions } = this;
    if (!positions.arrived || !coloring || !order) return null;
    return { start: placement.start, end: placement.end, between: placement.between, coloring, order, camera };
  }

  /** After a change of the layout. */
  measure(box: Box): void {
    this.box = box;
    [this.camera.width, this.camera.height] = [box.width, box.height];
  }

  /** While it moves, a map of very many points may be drawn with a random part of them. */
  tellDrawn(drawn: number, all: number): void {
    this.sampleNote.hidden = drawn >= all;
    if (drawn >= all) return;
    this.sampleNote.textContent = `${drawn.toLocaleString("en-US")} of ${counted(all, "point")} while it moves`;
  }

  drawAbove(): void {
    const { app, camera, info, placement } = this;
    const xy = this.newRows;
    const own = <T extends { map: string }>(value: T | null) => (value?.map === info.id ? value : null);
    drawOverlay(this.canvas, {
      camera,
      dark: app.dark.value,
      radius: pointStyle(this.order?.rows.length ?? 1, camera).radius,
      names: app.classNames.value ? this.classNames.places(app.hidden.value, placement) : [],
      hovered: this.placeOf(app.hovered.value),
      pinned: placement.at(app.pinned.value),
      placed: xy ? { xy, novelty: app.placed.value!.novelty, hovered: app.hoveredNew.value } : null,
      probe: own(app.probe.value)?.at ?? null,
      line: own(app.line.value)?.at ?? null,
      draft: this.drawn,
    });
  }

  /** Where new rows are on this map. */
  private get newRows(): Float32Array | undefined {
    return this.app.placed.value?.xy[this.info.id];
  }

  private placeOf(row: number): Point | null {
    return row >= 0 && (!this.visible || this.visible(row)) ? this.placement.at(row) : null;
  }

  // What gestures and keys do.

  pan(dx: number, dy: number): void {
    this.camera.pan(dx, dy);
    this.moved();
  }

  zoomAt(px: number, py: number, factor: number): void {
    this.camera.zoomAt(px, py, factor);
    this.moved();
  }

  reset(): void {
    this.camera.reset();
    this.moved();
  }

  moved(): void {
    this.shared.redraw(this, true);
    this.shared.moved(this);
  }

  nearest(px: number, py: number): number {
    if (this.placement.moves) return -1;
    const [x, y] = this.camera.toMap(px, py);
    return this.placement.index.nearest(x, y, REACH_PX / this.camera.scale, this.visible);
  }

  hover(px: number, py: number): void {
    const added = this.newRows ? newRowAt(this.camera, this.newRows, px, py) : -1;
    const row = added < 0 ? this.nearest(px, py) : -1;
    this.app.hoveredNew.set(added);
    this.app.hovered.set(row);
    this.tooltip.show(added < 0 ? { kind: "row", number: row } : { kind: "new", number: added }, px, py);
  }

  leave(): void {
    this.app.hovered.set(-1);
    this.app.hoveredNew.set(-1);
    this.tooltip.hide();
  }

  beginDraft(kind: Draft["kind"], at: Point): void {
    this.drawn = { kind, at: [at] };
  }

  /** Adds a place to the lasso or line that is being drawn, if it was not given up. */
  draft(at: Point): void {
    this.drawn?.at.push(at);
    this.drawAbove();
  }

  takeDraft(): Point[] {
    const at = this.drawn?.at ?? [];
    this.drawn = null;
    this.drawAbove();
    return at;
  }

  /** Escape gives up what is being drawn; false if nothing is. */
  drops(): boolean {
    return this.drawn !== null && this.takeDraft().length > 0;
  }

  close(): void {
    this.tooltip.hide();
    this.title.close();
    this.path.close();
    this.root.remove();
  }
}
