// Pointer, wheel and touch on a map.
import type { Tool } from "../app.ts";
import { perFrame } from "../dom.ts";
import type { Point } from "../protocol.ts";
import { selectInside, setLine, setProbe } from "./actions.ts";
import type { MapView } from "./map_view.ts";
import type { Combine } from "./order.ts";

const CLICK_PX = 4; // a pointer that moved less was not dragged
const SCROLL_PAUSE_MS = 300; // after which a wheel is judged anew

export class Gestures {
  private readonly pointers = new Map<number, Point>();
  private tool: Tool | null = null; // of the drag in progress
  private how: Combine = "replace";
  private from: Point = [0, 0];
  private dragged = false;
  private scrolled = { at: -Infinity, pans: false };
  private hover: Point | null = null;
  private readonly hoverSoon = perFrame(() => this.hover && this.view.hover(...this.hover));

  constructor(private readonly view: MapView) {
    const { plot } = view;
    plot.addEventListener("pointerdown", (event) => this.down(event));
    plot.addEventListener("pointermove", (event) => this.move(event));
    plot.addEventListener("pointerup", (event) => this.up(event, true));
    plot.addEventListener("pointercancel", (event) => this.up(event, false));
    plot.addEventListener("pointerleave", () => this.leave());
    plot.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    plot.addEventListener("dblclick", () => view.app.tool.value === "move" && view.reset());
  }

  private at(event: MouseEvent): Point {
    const box = this.view.plot.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    const { view } = this;
    view.plot.setPointerCapture(event.pointerId);
    this.leave();
    this.pointers.set(event.pointerId, this.at(event));
    if (this.pointers.size > 1) return this.cancel(); // two fingers zoom
    this.from = this.at(event);
    this.dragged = false;
    this.tool = event.shiftKey ? "lasso" : view.app.tool.value;
    this.how = event.altKey ? "remove" : event.shiftKey ? "add" : "replace";
    if (this.tool === "lasso" || this.tool === "line") view.beginDraft(this.tool, view.camera.toMap(...this.from));
    if (this.tool === "probe") setProbe(view.app, view.info, view.camera.toMap(...this.from));
  }

  private move(event: PointerEvent): void {
    const at = this.at(event), before = this.pointers.get(event.pointerId);
    if (!before) {
      this.hover = event.pointerType === "touch" ? null : at;
      return this.hoverSoon();
    }
    if (this.pointers.size === 2) this.pinch(event.pointerId, at);
    else this.drag(before, at);
    this.pointers.set(event.pointerId, at);
  }

  private drag(before: Point, at: Point): void {
    const { view, tool } = this;
    if (Math.hypot(at[0] - this.from[0], at[1] - this.from[1]) > CLICK_PX) this.dragged = true;
    if (tool === "move" && this.dragged) view.pan(at[0] - before[0], at[1] - before[1]);
    if (tool === "lasso" || tool === "line") view.draft(view.camera.toMap(...at));
    if (tool === "probe") setProbe(view.app, view.info, view.camera.toMap(...at));
  }

  private pinch(moved: number, at: Point): void {
    const [, other] = [...this.pointers].find(([id]) => id !== moved)!;
    const before = this.pointers.get(moved)!;
    const size = (point: Point) => Math.max(1, Math.hypot(point[0] - other[0], point[1] - other[1]));
    const middle = (point: Point): Point => [(point[0] + other[0]) / 2, (point[1] + other[1]) / 2];
    const [was, is] = [middle(before), middle(at)];
    this.view.pan(is[0] - was[0], is[1] - was[1]);
    this.view.zoomAt(...is, size(at) / size(before));
  }

  private up(event: PointerEvent, ends: boolean): void {
    if (!this.pointers.delete(event.pointerId)) return;
    if (ends && this.tool) this.finish(this.tool, this.at(event));
    this.cancel();
  }

  private finish(tool: Tool, at: Point): void {
    const { view } = this, { app } = view;
    const drawn = view.takeDraft();
    const clicks = !this.dragged && tool !== "probe" && tool !== "line";
    if (clicks) app.pinned.set(view.nearest(...at));
    else if (!drawn.length) return;
    else if (tool === "lasso") selectInside(app, view.placement, view.visible, drawn, this.how);
    else if (tool === "line") setLine(app, view.info, drawn);
  }

  private cancel(): void {
    this.tool = null;
    this.view.takeDraft();
  }

  private leave(): void {
    this.hover = null;
    this.view.leave();
  }

  private wheel(event: WheelEvent): void {
    const { view } = this;
    const focused = view.plot.matches(":focus");
    if (view.app.start.hosted === "notebook" && !event.ctrlKey && !focused) return; // the notebook scrolls
    event.preventDefault();
    this.leave();
    if (event.ctrlKey) view.zoomAt(...this.at(event), Math.exp(-event.deltaY * 0.01));
    else if (this.pans(event)) view.pan(-event.deltaX, -event.deltaY);
    else view.zoomAt(...this.at(event), Math.exp(-event.deltaY * (event.deltaMode === 0 ? 0.0015 : 0.05)));
  }

  /** Two fingers on a trackpad scroll in fractions of pixels or sideways, which a wheel does not. */
  private pans(event: WheelEvent): boolean {
    const now = performance.now();
    // 120 for each notch, at any zoom of the page.
    const notches = (event as WheelEvent & { wheelDeltaY?: number }).wheelDeltaY ?? 1;
    const fractional = !Number.isInteger(event.deltaY) && notches % 120 !== 0;
    const looks = event.deltaMode === 0 && (event.deltaX !== 0 || fractional);
    const pans = looks || (this.scrolled.pans && now - this.scrolled.at < SCROLL_PAUSE_MS);
    this.scrolled = { at: now, pans };
    return pans;
  }
}
