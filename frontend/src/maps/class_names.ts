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

/** Some rows of each class; empty if there are too many classes. `shuffled` makes them a fair sample. */
export function classSamples(coloring: Coloring, shuffled: Uint32Array): number[][] {
  const { color, codes } = coloring;
  if (color?.kind !== "classes" || color.classes.length > MOST_NAMES) return [];
  const samples: number[][] = color.classes.map(() => []);
  for (let i = 0; i < shuffled.length; i++) {
    const sample = samples[codes[shuffled[i]!]!];
    if (sample && sample.length < SAMPLE) sample.push(shuffled[i]!);
  }
  return samples;
}

export function placedNames(
  samples: number[][], classes: ClassColor[], hidden: ReadonlySet<number>, placement: Placement,
): PlacedName[] {
  const names: PlacedName[] = [];
  samples.forEach((rows, k) => {
    const places = rows.map((row) => placement.at(row)).filter((at) => at !== null);
    if (hidden.has(k) || !places.length) return;
    const { name, color } = classes[k]!;
    names.push({ name, color, x: median(places.map(([x]) => x)), y: median(places.map(([, y]) => y)) });
  });
  return names;
}

function median(values: number[]): number {
  return Float32Array.from(values).sort()[Math.floor(values.length / 2)]!;
}
