// Colors of points: ramps for values, and colors of classes on a light or dark background.
import type { Color } from "../protocol.ts";

export type Scale = Extract<Color, { kind: "values" }>["scale"];
export type Stop = [number, string];

/** Points whose class or value is missing. */
export const GRAY = "#9a9a9a";
/** Points when nothing colors them. */
export const PLAIN = "#2f74c0";

/** New rows, which are drawn as diamonds. */
export function newColor(dark: boolean): string {
  return dark ? "#ffd24a" : "#e0218a";
}

// Viridis without its darkest and lightest parts, which are lost on dark and light backgrounds.
const VALUES: Stop[] = [
  [0, "#46327e"], [0.17, "#3b528b"], [0.33, "#2c728e"], [0.5, "#21918c"],
  [0.67, "#35b779"], [0.83, "#7fce46"], [1, "#d8d219"],
];
// Values from 0.6 to 1. Below 0.9 neighbors on the map are often not neighbors in the data.
const TRUST: Stop[] = [
  [0, "#a63603"], [0.5, "#f08a24"], [0.75, "#d9c9a3"], [0.875, "#7fb0dc"], [1, "#1f5fa8"],
];

/** The colors of a ramp, at fractions of its range. */
export function rampStops(scale: Scale, dark = false): Stop[] {
  const stops = scale === "trust" ? TRUST : VALUES;
  return stops.map(([at, color]) => [at, shownColor(color, dark)]);
}

/** The values at the two ends of a ramp. That of "trust" is fixed, so that maps can be compared. */
export function rampRange(color: Extract<Color, { kind: "values" }>): [number, number] {
  return color.scale === "trust" ? [0.6, 1] : [color.low, color.high];
}

type RGB = [number, number, number];

export function rgb(hex: string): RGB {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)) as RGB;
}

function hex(color: RGB): string {
  return "#" + color.map((each) => Math.round(each).toString(16).padStart(2, "0")).join("");
}

function mixed(a: RGB, b: RGB, t: number): RGB {
  return a.map((each, i) => each + (b[i]! - each) * t) as RGB;
}

/** A color as it is drawn: dark ones are lightened on a dark background. */
export function shownColor(color: string, dark: boolean): string {
  const c = rgb(color);
  const light = (0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2]) / 255;
  return dark && light < 0.42 ? hex(mixed(c, [255, 255, 255], 0.42 - 0.5 * light)) : color;
}

/** The color of a ramp at a fraction of its range. */
export function rampColor(stops: Stop[], fraction: number): RGB {
  let i = 1;
  while (i < stops.length - 1 && fraction > stops[i]![0]) i++;
  const [a, from] = stops[i - 1]!, [b, to] = stops[i]!;
  return mixed(rgb(from), rgb(to), Math.min(1, Math.max(0, (fraction - a) / (b - a))));
}
