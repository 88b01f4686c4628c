// A small card beside the row under the pointer.
import type { App } from "../app.ts";
import { element } from "../dom.ts";
import { factsCard, rowFacts } from "../side/facts.ts";

const PAUSE_MS = 80;
const DISTANCE = 14; // from the pointer, in pixels

export class Tooltip {
  readonly root = element("div", { class: "tip", role: "tooltip", hidden: true });
  private row = -1;
  private timer = 0;
  private place = { x: 0, y: 0 };

  constructor(private readonly app: App) {}

  show(row: number, x: number, y: number): void {
    this.place = { x, y };
    if (row === this.row) return this.move();
    this.hide();
    if (row < 0) return;
    this.row = row;
    this.timer = window.setTimeout(() => void this.fill(row), PAUSE_MS);
  }

  hide(): void {
    clearTimeout(this.timer);
    this.row = -1;
    this.root.hidden = true;
  }

  private async fill(row: number): Promise<void> {
    const facts = await rowFacts(this.app).get(row).catch(() => null); // the page says what went wrong
    if (!facts || row !== this.row) return;
    this.root.replaceChildren(factsCard(this.app, facts, true));
    this.root.hidden = false;
    this.move();
  }

  /** On the other side of the pointer where there is more room. */
  private move(): void {
    const around = this.root.parentElement;
    if (!around || this.root.hidden) return;
    const { x, y } = this.place;
    const { clientWidth: width, clientHeight: height } = around;
    const { offsetWidth: own, offsetHeight: tall } = this.root;
    const left = x + DISTANCE + own <= width ? x + DISTANCE : x - DISTANCE - own;
    const top = y + DISTANCE + tall <= height ? y + DISTANCE : y - DISTANCE - tall;
    this.root.style.left = `${Math.max(2, Math.min(left, width - own - 2))}px`;
    this.root.style.top = `${Math.max(2, Math.min(top, height - tall - 2))}px`;
  }
}
