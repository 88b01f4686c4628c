// Asks for the positions of a map and of the steps that led to it, and keeps the steps used last.
import type { App } from "../app.ts";
import type { MapInfo } from "../protocol.ts";
import type { Placement } from "./placement.ts";

const KEPT_BYTES = 96 * 2 ** 20;
type Key = number | null; // a step, or null for the map itself

export class Positions {
  /** Whether there is something to show. */
  arrived = false;
  private readonly kept = new Map<Key, Promise<Float32Array>>(); // the one used last is at the end
  private readonly there = new Set<Key>();
  private redrawn: number;

  constructor(private readonly app: App, private info: MapInfo, private readonly placement: Placement) {
    this.redrawn = info.redrawn;
  }

  /** New facts about the map; the positions are asked for again if they have changed. */
  update(info: MapInfo): void {
    this.info = info;
    if (info.redrawn === this.redrawn) return;
    this.redrawn = info.redrawn;
    this.kept.clear();
    this.there.clear();
    void this.show();
  }

  /** Shows the map, or the place on its path that is wanted now. */
  async show(): Promise<void> {
    const wanted = this.wanted, { redrawn } = this;
    const first = Math.floor(wanted ?? 0);
    const keys: Key[] = wanted === null ? [null] : wanted === first ? [first] : [first, first + 1];
    let found: Float32Array[];
    try {
      found = await Promise.all(keys.map((key) => this.get(key)));
    } catch {
      return; // the page says what went wrong
    }
    if (redrawn !== this.redrawn || wanted !== this.wanted) return; // something newer is wanted
    const [start, end = start] = found as [Float32Array, Float32Array?];
    const { placement } = this;
    const isFar = start !== placement.start && start !== placement.end;
    if (this.arrived && wanted === null && isFar) placement.moveTo(start);
    else placement.set(start, end, found.length === 2 ? wanted! - first : 1);
    this.arrived = true;
  }

  private get wanted(): number | null {
    return this.app.along.value.get(this.info.id) ?? null;
  }

  /** Whether a step is here already; asks for it if not. */
  has(step: number): boolean {
    const key = this.keyOf(step);
    if (!this.there.has(key)) this.get(key).catch(() => {});
    return this.there.has(key);
  }

  private keyOf(step: Key): Key {
    return step === this.info.own_step ? null : step;
  }

  private get(step: Key): Promise<Float32Array> {
    const key = this.keyOf(step);
    const found = this.kept.get(key) ?? this.request(key);
    this.kept.delete(key);
    this.kept.set(key, found);
    const most = Math.max(4, Math.floor(KEPT_BYTES / (8 * Math.max(1, this.app.start.n))));
    for (const old of this.kept.keys()) {
      if (this.kept.size <= most) break;
      this.kept.delete(old);
      this.there.delete(old);
    }
    return found;
  }

  private request(key: Key): Promise<Float32Array> {
    const { redrawn } = this;
    const asked = this.app.ask("positions", { map: this.info.id, step: key }).then(({ xy }) => xy);
    asked.then(
      () => redrawn === this.redrawn && this.there.add(key),
      () => this.kept.get(key) === asked && this.kept.delete(key),
    );
    return asked;
  }
}
