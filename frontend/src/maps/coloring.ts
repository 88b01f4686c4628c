// The colors of all points as a palette and one code per point, for classes and for values alike.
import type { Color } from "../protocol.ts";
import { GRAY, PLAIN, rampColor, rampRange, rampStops, rgb, shownColor } from "./colors.ts";
import type { Visible } from "./order.ts";

export interface Coloring {
  codes: Uint16Array;
  palette: Uint8Array; // RGBA, in lines of 256 colors
  color: Color | null;
}

const LEVELS = 1000; // of a ramp, more than can be told apart

/** Makes colorings, and keeps the codes, which several maps share. */
export class Colorings {
  private readonly codes = new WeakMap<Color, Uint16Array>();
  private readonly palettes = new WeakMap<Color, [light?: Uint8Array, dark?: Uint8Array]>();
  private readonly same: Uint16Array;
  private readonly plain: [light: Uint8Array, dark: Uint8Array];

  constructor(n: number) {
    this.same = new Uint16Array(n);
    this.plain = [paletteOf([PLAIN], false), paletteOf([PLAIN], true)];
  }

  of(color: Color | null, dark: boolean): Coloring {
    const which = dark ? 1 : 0;
    if (!color) return { codes: this.same, palette: this.plain[which], color };
    let codes = this.codes.get(color);
    if (!codes) this.codes.set(color, (codes = codesOf(color)));
    const kept = this.palettes.get(color) ?? [];
    const palette = (kept[which] ??= color.kind === "classes"
      ? paletteOf(color.classes.map((each) => each.color), dark)
      : paletteOf(ramp(color, dark), dark));
    this.palettes.set(color, kept);
    return { codes, palette, color };
  }
}

/** Missing values have the code after the last one, which is gray. */
function codesOf(color: Color): Uint16Array {
  if (color.kind === "classes") {
    const missing = color.classes.length;
    return color.codes.map((code) => Math.min(code, missing));
  }
  const [low, high] = rampRange(color);
  const factor = high > low ? (LEVELS - 1) / (high - low) : 0;
  const middle = high > low ? 0 : (LEVELS - 1) / 2;
  const codes = new Uint16Array(color.values.length);
  color.values.forEach((value, i) => {
    const level = middle + Math.min(LEVELS - 1, Math.max(0, (value - low) * factor));
    codes[i] = Number.isNaN(value) ? LEVELS : Math.round(level);
  });
  return codes;
}

function ramp(color: Extract<Color, { kind: "values" }>, dark: boolean): [number, number, number][] {
  const stops = rampStops(color.scale, dark);
  return Array.from({ length: LEVELS }, (_, i) => rampColor(stops, i / (LEVELS - 1)));
}

function paletteOf(colors: (string | [number, number, number])[], dark: boolean): Uint8Array {
  const palette = new Uint8Array(1024 * Math.ceil((colors.length + 1) / 256));
  [...colors, GRAY].forEach((color, i) => {
    palette.set(typeof color === "string" ? rgb(shownColor(color, dark)) : color, 4 * i);
    palette[4 * i + 3] = 255;
  });
  return palette;
}

/** Which rows the legend does not hide; null if it hides none. */
export function visibleRows(coloring: Coloring, hidden: ReadonlySet<number>): Visible | null {
  if (!hidden.size || coloring.color?.kind !== "classes") return null;
  const off = new Uint8Array(coloring.color.classes.length + 1);
  for (const each of hidden) if (each < off.length) off[each] = 1;
  const { codes } = coloring;
  return (row) => !off[codes[row]!];
}
