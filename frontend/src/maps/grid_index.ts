// Finds rows on a map by place: rows are sorted by the cell of a uniform grid in which they are.
import type { Point } from "../protocol.ts";
import type { Visible } from "./order.ts";
import { crossings, inside } from "./polygon.ts";

const ROWS_PER_CELL = 4;

export class GridIndex {
  private readonly side: number; // cells along each axis
  private readonly starts: Uint32Array; // where each cell begins in rows
  private readonly rows: Uint32Array;
  private left = -1;
  private bottom = -1;
  private step = 1; // width of a cell

  constructor(private readonly xy: Float32Array) {
    const n = xy.length / 2;
    this.side = Math.max(1, Math.min(1024, Math.ceil(Math.sqrt(n / ROWS_PER_CELL))));
    this.measure();
    this.starts = new Uint32Array(this.side ** 2 + 1);
    this.rows = this.sort(n);
  }

  private measure(): void {
    let left = Infinity, right = -Infinity, bottom = Infinity, top = -Infinity;
    for (let i = 0; i < this.xy.length; i += 2) {
      const x = this.xy[i]!, y = this.xy[i + 1]!;
      if (!isPlaced(x, y)) continue;
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < bottom) bottom = y;
      if (y > top) top = y;
    }
    if (left > right) return;
    this.left = left;
    this.bottom = bottom;
    this.step = Math.max(right - left, top - bottom, 1e-9) / this.side;
  }

  /** Counting sort by cell; rows without a place are left out. */
  private sort(n: number): Uint32Array {
    const { xy, starts } = this;
    const cells = new Int32Array(n);
    for (let i = 0; i < n; i++) {
      const x = xy[2 * i]!, y = xy[2 * i + 1]!;
      cells[i] = isPlaced(x, y) ? this.line(y, this.bottom) * this.side + this.line(x, this.left) : -1;
      if (cells[i]! >= 0) starts[cells[i]! + 1]!++;
    }
    for (let c = 0; c < this.side ** 2; c++) starts[c + 1]! += starts[c]!;
    const next = starts.slice();
    const rows = new Uint32Array(starts[this.side ** 2]!);
    for (let i = 0; i < n; i++) if (cells[i]! >= 0) rows[next[cells[i]!]!++] = i;
    return rows;
  }

  /** The line of cells at a coordinate. */
  private line(value: number, from: number): number {
    return Math.max(0, Math.min(this.side - 1, Math.floor((value - from) / this.step)));
  }

  /** The visible row that is nearest to a place and not further than `reach`; -1 if there is none. */
  nearest(x: number, y: number, reach: number, visible: Visible | null): number {
    const { xy, rows, starts, side } = this;
    const right = this.line(x + reach, this.left), top = this.line(y + reach, this.bottom);
    let best = -1, least = reach * reach;
    for (let v = this.line(y - reach, this.bottom); v <= top; v++) {
      for (let u = this.line(x - reach, this.left); u <= right; u++) {
        for (let k = starts[v * side + u]!; k < starts[v * side + u + 1]!; k++) {
          const row = rows[k]!;
          const d = (xy[2 * row]! - x) ** 2 + (xy[2 * row + 1]! - y) ** 2;
          if (d > least || (visible && !visible(row))) continue;
          least = d;
          best = row;
        }
      }
    }
    return best;
  }

  /** The visible rows inside a polygon, in no order. */
  inside(polygon: Point[], visible: Visible | null): Uint32Array {
    const { xy, rows, starts, side } = this;
    const found = new Uint32Array(rows.length);
    const ys = polygon.map(([, y]) => y);
    const last = this.line(Math.max(...ys), this.bottom);
    let count = 0;
    for (let v = this.line(Math.min(...ys), this.bottom); v <= last; v++) {
      const crossed = this.crossed(polygon, v);
      const cuts = crossings(polygon, this.bottom + (v + 0.5) * this.step);
      let passed = 0; // cuts to the left of the center of the cell
      for (let u = 0; u < side; u++) {
        while (passed < cuts.length && cuts[passed]! < this.left + (u + 0.5) * this.step) passed++;
        if (!crossed[u] && passed % 2 === 0) continue;
        for (let k = starts[v * side + u]!; k < starts[v * side + u + 1]!; k++) {
          const row = rows[k]!;
          if (crossed[u] && !inside(polygon, xy[2 * row]!, xy[2 * row + 1]!)) continue;
          if (!visible || visible(row)) found[count++] = row;
        }
      }
    }
    return found.slice(0, count);
  }

  /** Cells of a line that an edge of the polygon may cross; all others are inside or outside as a whole. */
  private crossed(polygon: Point[], v: number): Uint8Array {
    const marked = new Uint8Array(this.side);
    const low = this.bottom + v * this.step, high = low + this.step;
    for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
      const [ax, ay] = polygon[j]!, [bx, by] = polygon[i]!;
      const outer = v === 0 || v === this.side - 1; // these also hold what is beyond by rounding
      if (!outer && (Math.max(ay, by) < low || Math.min(ay, by) > high)) continue;
      const at = (y: number) => (by === ay ? ax : ax + ((y - ay) / (by - ay)) * (bx - ax));
      const ends = by === ay || outer ? [ax, bx] : [clamp(at(low), ax, bx), clamp(at(high), ax, bx)];
      const from = this.line(Math.min(...ends) - 1e-6, this.left), to = this.line(Math.max(...ends) + 1e-6, this.left);
      marked.fill(1, from, to + 1);
    }
    return marked;
  }
}

function clamp(value: number, a: number, b: number): number {
  return Math.min(Math.max(a, b), Math.max(Math.min(a, b), value));
}

export function isPlaced(x: number, y: number): boolean {
  return x === x && y === y; // NaN is not equal to itself
}
