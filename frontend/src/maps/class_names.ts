// The names of classes, each at the median of its points.
import type { ClassColor } from "../protocol.ts";
import type { Coloring } from "./coloring.ts";
import type { Placement } from "./placement.ts";

export const MOST_NAMES = 20; // more names would cover the map
const SAMPLE = 1000; // points of a class, enough for a median

export interface PlacedName {
  name: string;
  color: string;
  x: number;
  y: number;
}

export class ClassNames {
  private classes: ClassColor[] = [];
  private samples: number[][] = []; // some rows of each class
  private kept: { for: unknown[]; names: PlacedName[] } = { for: [], names: [] };

  /** New colors; without names if there are too many classes. `shuffled` makes the samples fair. */
  update({ color, codes }: Coloring, shuffled: Uint32Array): void {
    const few = color?.kind === "classes" && color.classes.length <= MOST_NAMES;
    this.classes = few ? color.classes : [];
    this.samples = this.classes.map(() => []);
    if (!few) return;
    for (let i = 0; i < shuffled.length; i++) {
      const sample = this.samples[codes[shuffled[i]!]!];
      if (sample && sample.length < SAMPLE) sample.push(shuffled[i]!);
    }
  }

  /** Names where they belong now; found again only after a change. */
  places(hidden: ReadonlySet<number>, placement: Placement): PlacedName[] {
    const state = [this.samples, hidden, placement.start, placement.end, placement.between];
    const changed = state.some((each, i) => each !== this.kept.for[i]);
    if (changed) this.kept = { for: state, names: this.find(hidden, placement) };
    return this.kept.names;
  }

  private find(hidden: ReadonlySet<number>, placement: Placement): PlacedName[] {
    const names: PlacedName[] = [];
    this.classes.forEach(({ name, color, missing }, k) => {
      const places = this.samples[k]!.map((row) => placement.at(row)).filter((at) => at !== null);
      if (missing || hidden.has(k) || !places.length) return;
      names.push({ name, color, x: median(places.map(([x]) => x)), y: median(places.map(([, y]) => y)) });
    });
    return names;
  }
}

function median(values: number[]): number {
  return Float32Array.from(values).sort()[Math.floor(values.length / 2)]!;
}
