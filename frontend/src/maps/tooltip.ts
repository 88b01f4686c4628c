// A small card beside the row under the pointer, or the new row.
import type { App } from "../app.ts";
import { element } from "../dom.ts";
import { factsCard, rowFacts } from "../side/facts.ts";
import { newRowCard } from "../side/new_rows.ts";

const PAUSE_MS = 80;
const DISTANCE = 14; // from the pointer, in pixels

/** A row of the data, or one that was placed on the maps; -1 for none. */
export interface Pointed {
  kind: "row" | "new";
  number: number;
}

const NOTHING: Pointed = { kind: "row", number: -1 };

export class Tooltip {
  readonly root = element("div", { class: "tip", role: "tooltip", hidden: true });
  private pointed = NOTHING;
  private timer = 0;
  private place = { x: 0, y: 0 };

  constructor(private readonly app: App) {}

  show(pointed: Pointed, x: number, y: number): void {
    this.place = { x, y };
    const { kind, number } = this.pointed;
    if (pointed.kind === kind && pointed.number === number) return this.move();
    this.hide();
    if (pointed.number < 0) return;
    this.pointed = pointed;
    this.timer = window.setTimeout(() => void this.fill(pointed), PAUSE_MS);
  }

  hide(): void {
    clearTimeout(this.timer);
    this.pointed = NOTHING;
    this.root.hidden = true;
  }

  private async fill(pointed: Pointed): Promise<void> {
    const card = await this.card(pointed).catch(() => null); // the page says what went wrong
    if (!card || pointed !== this.pointed) return;
    this.root.replaceChildren(card);
    this.root.hidden = false;
    this.move();
  }

  private async card({ kind, number }: Pointed): Promise<HTMLElement | null> {
    const { app } = this;
    if (kind === "new") return app.placed.value && newRowCard(app.placed.value, number);
    return factsCard(app, await rowFacts(app).get(number), true);
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
