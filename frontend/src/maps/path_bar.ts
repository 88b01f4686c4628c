// The slider below a map that moves along its homotopy, and the button that plays it.
import type { App } from "../app.ts";
import { button, element } from "../dom.ts";
import type { MapInfo } from "../protocol.ts";
import { lessMotion } from "./placement.ts";
import type { Positions } from "./positions.ts";

const WHOLE_MS = 8000; // the whole path, when it plays
const CATCHES = 0.02; // part of the slider around the map itself, which a pointer would hardly hit
const HELP = "Between two steps that were kept, positions are interpolated.";

export class PathBar {
  readonly root: HTMLElement;
  private readonly play = button("▶", () => this.toggle(), { class: "play" });
  private readonly slider = element("input", {
    type: "range", min: 0, step: "any", title: HELP, "aria-label": "Step of the path",
    oninput: () => this.drag(this.slider.valueAsNumber),
    onkeydown: (event) => this.onKey(event),
  });
  private readonly label = element("output", {});
  private readonly own = button("Map", () => this.moveTo(this.info.own_step), {
    class: "own-step", title: "Back to the step that is the map itself",
  });
  private frame = 0; // of the animation, or 0 while it does not play
  private before = 0;
  private readonly ends: () => void;

  constructor(private readonly app: App, private info: MapInfo, private readonly positions: Positions) {
    const attributes = { class: "path", role: "group", "aria-label": `Path of ${info.name}` };
    this.root = element("div", attributes, this.play, this.slider, this.label, this.own);
    this.ends = app.along.watch(() => this.show());
  }

  update(info: MapInfo): void {
    this.info = info;
    this.show();
  }

  private get last(): number {
    return this.info.steps.length - 1;
  }

  private get at(): number {
    return this.app.along.value.get(this.info.id) ?? this.info.own_step;
  }

  private show(): void {
    this.root.hidden = this.info.steps.length < 2;
    const text = this.info.steps[Math.round(this.at)]?.label ?? "";
    this.slider.max = String(this.last);
    this.slider.value = String(this.at);
    this.slider.setAttribute("aria-valuetext", `${text}, step ${Math.round(this.at) + 1} of ${this.last + 1}`);
    this.label.textContent = text;
    this.own.disabled = !this.app.along.value.has(this.info.id);
    this.play.textContent = this.frame ? "❚❚" : "▶";
    this.play.setAttribute("aria-label", this.frame ? "Pause" : "Play the path");
  }

  private drag(to: number): void {
    const { own_step } = this.info;
    this.moveTo(Math.abs(to - own_step) < CATCHES * this.last ? own_step : to);
    this.show(); // also if nothing has changed, as the slider was moved
  }

  private moveTo(at: number): void {
    const along = new Map(this.app.along.value), step = Math.min(this.last, Math.max(0, at));
    if (step === this.info.own_step) along.delete(this.info.id);
    else along.set(this.info.id, step);
    this.app.active.set(this.info.id);
    this.app.along.set(along);
  }

  /** Arrow keys go from step to step. */
  private onKey(event: KeyboardEvent): void {
    const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!sign) return;
    event.preventDefault();
    this.moveTo(sign < 0 ? Math.ceil(this.at) - 1 : Math.floor(this.at) + 1);
  }

  private toggle(): void {
    if (this.frame) return this.pause();
    if (this.at >= this.last || !this.app.along.value.has(this.info.id)) this.moveTo(0); // from the beginning
    this.before = performance.now();
    this.frame = requestAnimationFrame((now) => this.advance(now));
    this.show();
  }

  private pause(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.show();
  }

  private advance(now: number): void {
    const next = Math.min(this.last, Math.floor(this.at) + 1);
    const here = this.positions.has(next);
    if (here) this.positions.has(Math.min(this.last, next + 1)); // asks for it ahead of time
    const speed = this.last / WHOLE_MS;
    if (lessMotion()) {
      if (here && now - this.before > Math.max(500, 1 / speed)) this.goOn(now, next);
    } else if (here) this.goOn(now, Math.min(next, this.at + (now - this.before) * speed));
    else this.before = now; // waits for the step
    if (this.at >= this.last) return this.pause();
    this.frame = requestAnimationFrame((time) => this.advance(time));
  }

  private goOn(now: number, at: number): void {
    this.before = now;
    this.moveTo(at);
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    this.ends();
  }
}
