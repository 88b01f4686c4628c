// Which points are inside a polygon, which is closed by itself and may cross itself (even-odd rule).
import type { Point } from "../protocol.ts";

/** Where a horizontal line crosses the polygon, from left to right. */
export function crossings(polygon: Point[], y: number): number[] {
  const found: number[] = [];
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [ax, ay] = polygon[j]!, [bx, by] = polygon[i]!;
    if (ay > y !== by > y) found.push(ax + ((y - ay) / (by - ay)) * (bx - ax));
  }
  return found.sort((a, b) => a - b);
}

export function inside(polygon: Point[], x: number, y: number): boolean {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [ax, ay] = polygon[j]!, [bx, by] = polygon[i]!;
    if (ay > y !== by > y && x < ax + ((y - ay) / (by - ay)) * (bx - ax)) odd = !odd;
  }
  return odd;
}

/** At most so many points of a line, with its two ends. */
export function thinned(line: Point[], most: number): Point[] {
  if (line.length <= most) return line;
  const step = (line.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, i) => line[Math.round(i * step)]!);
}
