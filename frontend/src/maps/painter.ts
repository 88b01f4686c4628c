// Colors all maps, and draws those that have changed, once per frame.
import type { App } from "../app.ts";
import { element } from "../dom.ts";
import type { Color } from "../protocol.ts";
import { Colorings, visibleRows } from "./coloring.ts";
import type { Coloring } from "./coloring.ts";
import type { MapView } from "./map_view.ts";
import { orderOf } from "./order.ts";
import type { Order, Visible } from "./order.ts";
import { Pace } from "./pace.ts";
import { Renderer } from "./renderer.ts";

const REST_MS = 160; // after which all points are drawn
const MUCH = 500_000; // points drawn without a pause for the browser
const NO_WEBGL =
  "This browser does not offer WebGL2, with which the maps are drawn. " +
  "Turn on hardware acceleration in its settings, or use another browser.";

/** The order of the points, and what it was made for. */
interface Ordered {
  coloring: Coloring;
  hidden: unknown;
  selection: unknown;
  order: Order;
  visible: Visible | null;
}

export class Painter {
  /** Called once when all maps on the page have been drawn. */
  onReady: () => void = () => {};
  readonly renderer: Renderer;
  private readonly colorings: Colorings;
  private readonly pace = new Pace();
  private readonly dirty = new Set<MapView>();
  private readonly moving = new Set<MapView>(); // drawn with a part of their points if need be
  private readonly partial = new Set<MapView>(); // were drawn so
  private last: Ordered | null = null;
  private readonly begun: { from: number; points: number }[] = []; // pictures that are not done
  private frame = 0;
  private rest = 0;
  private ready = false;
  private root: HTMLElement | null = null; // of all maps, when it was measured

  constructor(
    private readonly app: App, canvas: HTMLCanvasElement,
    private readonly shuffled: Uint32Array, private readonly views: () => MapView[],
  ) {
    this.colorings = new Colorings(app.start.n);
    this.renderer = new Renderer(canvas);
    this.renderer.onRestored = () => this.redrawAll();
    this.renderer.onLost = (text) => app.said.set(text);
    if (!this.renderer.works) canvas.after(element("p", { class: "no-webgl", role: "alert" }, NO_WEBGL));
  }

  paintAll(): void {
    for (const view of this.views()) void this.paint(view);
  }

  /** Asks for the colors of a map, and draws it with them. */
  async paint(view: MapView): Promise<void> {
    const by = this.app.colorBy.value;
    let color: Color | null = null;
    try {
      color = await this.colorOf(view);
    } catch {} // the page says what went wrong, and the map is drawn in one color
    if (by !== this.app.colorBy.value) return;
    const coloring = this.colorings.of(color, this.app.dark.value);
    const { order, visible } = this.orderOf(coloring);
    view.paint(coloring, order, visible);
  }

  /** Python does not know evidence about the map of a running job. */
  private colorOf(view: MapView): Promise<Color> | null {
    const known = this.app.map(view.info.id) || this.app.colorBy.value.by !== "evidence";
    return known ? this.app.color(view.info.id) : null;
  }

  /** Maps with the same colors share their order. */
  private orderOf(coloring: Coloring): { order: Order; visible: Visible | null } {
    const { value: hidden } = this.app.hidden, { value: selection } = this.app.selection;
    const { last } = this;
    if (last && last.coloring === coloring && last.hidden === hidden && last.selection === selection) return last;
    const visible = visibleRows(coloring, hidden);
    const order = orderOf(this.shuffled, visible, selection);
    this.last = { coloring, hidden, selection, order, visible };
    return this.last;
  }

  /** After a change of the layout: the canvas is empty then. */
  measure(root: HTMLElement): void {
    this.root = root;
    const around = root.getBoundingClientRect();
    this.renderer.resize(around.width, around.height);
    for (const view of this.views()) {
      const { left, top, width, height } = view.plot.getBoundingClientRect();
      view.measure({ left: left - around.left, top: top - around.top, width, height });
    }
    this.redrawAll();
    this.nextFrame();
    this.drawAll(); // now, as the empty canvas would be seen otherwise
  }

  redraw(view: MapView, moving: boolean): void {
    this.dirty.add(view);
    if (moving) {
      this.moving.add(view);
      this.drawRestLater();
    } else this.moving.delete(view);
    this.nextFrame();
  }

  redrawAll(): void {
    for (const view of this.views()) this.redraw(view, true);
  }

  /** Nothing is drawn while two pictures are not done, so that what moves does not lag behind. */
  private onFrame(now: number): void {
    this.frame = 0;
    const unfinished = this.renderer.unfinished();
    const done = this.begun.splice(0, this.begun.length - unfinished);
    for (const { from, points } of done) this.pace.learn(now - from, points);
    if (this.root && this.renderer.outdated) this.measure(this.root);
    for (const view of this.views()) view.placement.advance(now);
    if (this.dirty.size && unfinished < 2) this.drawFrame(now);
    if (this.dirty.size || this.begun.length) this.nextFrame();
    else if (!this.partial.size) this.checkReady();
  }

  private drawFrame(now: number): void {
    const moving = this.moving.size > 0;
    const points = this.drawAll();
    this.renderer.mark();
    this.begun.push({ from: now, points: moving ? points : 0 });
  }

  private nextFrame(): void {
    this.frame ||= requestAnimationFrame((now) => this.onFrame(now));
  }

  /** Draws maps that have changed; returns how many points that took. */
  private drawAll(): number {
    const views = this.views();
    const each = this.pace.limit / Math.max(1, this.moving.size);
    let drawn = 0;
    for (const view of [...this.dirty]) {
      const quick = this.moving.has(view);
      if (!quick && drawn > MUCH) break;
      this.dirty.delete(view);
      this.moving.delete(view);
      if (views.includes(view)) drawn += this.draw(view, quick ? each : Infinity);
    }
    return drawn;
  }

  /** With fewer points than it has if need be; then all follow when nothing has moved for a while. */
  private draw(view: MapView, limit: number): number {
    const picture = view.picture();
    view.drawAbove();
    if (!picture) {
      this.renderer.clear(view.box);
      return 0;
    }
    const all = picture.order.rows.length;
    if (all > limit) this.partial.add(view);
    const drawn = this.renderer.draw(picture, view.box, Math.ceil(limit), this.app.dark.value);
    view.tellDrawn(drawn, all);
    return drawn;
  }

  /** From the last movement, not the last picture, which may be late. */
  private drawRestLater(): void {
    clearTimeout(this.rest);
    this.rest = window.setTimeout(() => {
      if (this.moving.size) return this.drawRestLater();
      const all = [...this.partial];
      this.partial.clear();
      for (const each of all) this.redraw(each, false);
    }, REST_MS);
  }

  drawAbove(): void {
    for (const view of this.views()) view.drawAbove();
  }

  private checkReady(): void {
    if (this.ready || !this.views().every((view) => view.picture())) return;
    this.ready = true;
    this.onReady();
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
    this.renderer.close();
  }
}
