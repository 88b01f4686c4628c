// Rows of data as images and curves.
import type { App } from "../app.ts";
import { element, plain, shape } from "../dom.ts";
import type { RowKind, Start } from "../protocol.ts";

type Image = NonNullable<Start["image"]>;
/** Bytes span the range from image.low to image.high; floats are the data themselves. */
export type Values = Uint8Array | Float32Array | Float64Array;

const CURVE_WIDTH = 240;
const CURVE_HEIGHT = 90;

/** An image or a curve; a table needs names of features, see features.ts. */
export function drawRow(app: App, values: Values, kind: RowKind = app.start.row_kind, size = 160): HTMLElement {
  if (kind === "image" && app.start.image) return drawImage(app.start.image, values, size);
  return drawCurves([values]);
}

/** A row as pixels, magnified by a whole number so that each of them is seen. */
export function drawImage(image: Image, values: Values, size: number): HTMLCanvasElement {
  const [height, width] = image.shape as [number, number];
  const label = `image of ${width} × ${height} pixels`;
  const canvas = element("canvas", { class: "row-image", width, height, role: "img", "aria-label": label });
  const magnified = Math.max(1, Math.floor(size / Math.max(width, height)));
  canvas.style.width = `${Math.min(size, width * magnified)}px`;
  canvas.getContext("2d")!.putImageData(new ImageData(toBytes(image, values), width, height), 0, 0);
  return canvas;
}

/** Red, green, blue and opacity of each pixel. */
function toBytes(image: Image, values: Values): Uint8ClampedArray<ArrayBuffer> {
  const [height, width, channels = 1] = image.shape as [number, number, number?];
  const scaled = scaler(image, values);
  const dark = image.dark_ink && channels === 1;
  const bytes = new Uint8ClampedArray(height * width * 4);
  for (let pixel = 0; pixel < height * width; pixel++) {
    for (let channel = 0; channel < 4; channel++) {
      const from = channel < 3 ? Math.min(channel, channels - 1) : channel;
      const value = channel < 3 || channels === 4 ? scaled(values[pixel * channels + from]!) : 255;
      bytes[pixel * 4 + channel] = dark && channel < 3 ? 255 - value : value;
    }
  }
  return bytes;
}

function scaler(image: Image, values: Values): (value: number) => number {
  if (values instanceof Uint8Array) return (value) => value;
  const scale = 255 / (image.high - image.low || 1);
  return (value) => (value - image.low) * scale;
}

/** Curves over each other, on one scale; the first is the faintest if there are several. */
export function drawCurves(curves: ArrayLike<number>[]): HTMLElement {
  const [low, high] = rangeOf(curves);
  const lines = curves.map((values, index) => {
    const opacity = curves.length === 1 ? 1 : 0.25 + (0.75 * index) / (curves.length - 1);
    return shape("path", { class: "curve", d: pathOf(values, low, high, CURVE_WIDTH, CURVE_HEIGHT), opacity });
  });
  const box = `0 0 ${CURVE_WIDTH} ${CURVE_HEIGHT}`;
  const label = `${curves.length === 1 ? "curve" : `${curves.length} curves`} between ${plain(low)} and ${plain(high)}`;
  const attributes = { viewBox: box, preserveAspectRatio: "none", role: "img", "aria-label": label };
  const [top, bottom] = [high, low].map((value) => element("span", {}, plain(value)));
  return element("div", { class: "row-curve" }, top, shape("svg", attributes, ...lines), bottom);
}

/** A small curve that fits into a line of text. */
export function sparkline(values: ArrayLike<number>, label: string): SVGElement {
  const [low, high] = rangeOf([values]);
  const path = shape("path", { class: "curve", d: pathOf(values, low, high, 80, 18) });
  return shape("svg", { class: "sparkline", viewBox: "0 -1 80 20", role: "img", "aria-label": label }, path);
}

export function rangeOf(curves: ArrayLike<number>[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const values of curves) {
    for (let index = 0; index < values.length; index++) {
      const value = values[index]!;
      if (value < low) low = value; // never true of a missing value
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : [0, 1];
}

/** The path of a curve. Of long ones, the smallest and largest value at each place are enough. */
function pathOf(values: ArrayLike<number>, low: number, high: number, width: number, height: number): string {
  const across = width / Math.max(1, values.length - 1);
  const up = height / (high - low || 1);
  let path = "";
  let pen = "M";
  for (const index of places(values, 2 * width)) {
    const value = values[index]!;
    const known = Number.isFinite(value);
    if (known) path += `${pen}${(index * across).toFixed(1)} ${(height - (value - low) * up).toFixed(1)}`;
    pen = known ? "L" : "M"; // a missing value interrupts the curve
  }
  return path;
}

/** At most `count` indices, in order. */
function places(values: ArrayLike<number>, count: number): number[] {
  if (values.length <= count) return Array.from({ length: values.length }, (_, index) => index);
  const found: number[] = [];
  const step = (2 * values.length) / count;
  for (let part = 0; part * step < values.length; part++) {
    const start = Math.floor(part * step);
    const end = Math.min(values.length, Math.floor((part + 1) * step));
    found.push(...extremes(values, start, end));
  }
  return found;
}

function extremes(values: ArrayLike<number>, start: number, end: number): number[] {
  let smallest = start;
  let largest = start;
  for (let index = start; index < end; index++) {
    if (values[index]! < values[smallest]!) smallest = index;
    if (values[index]! > values[largest]!) largest = index;
  }
  return smallest === largest ? [smallest] : [Math.min(smallest, largest), Math.max(smallest, largest)];
}
