// Where the rows of one map are: at one step, or between two of them.
import type { Point } from "../protocol.ts";
import { GridIndex } from "./grid_index.ts";

const MOVE_MS = 700;

/** Whether people asked their system for less motion. */
export function lessMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export class Placement {
  start: Float32Array;
  end: Float32Array;
  between = 1;
  private began = -1; // when the animation began, or -1
  private mixed: Float32Array | null = null;
  private grid: GridIndex | null = null;

  constructor(n: number, private readonly changed: (moving: boolean) => void) {
    this.start = this.end = new Float32Array(2 * n).fill(NaN);
  }

  /** Shows positions between two steps, at once. */
  set(start: Float32Array, end: Float32Array, between: number): void {
    this.began = -1;
    this.put(start, end, between);
    this.changed(between < 1); // a slider between two steps moves on
  }

  /** Moves the points to new places. */
  moveTo(xy: Float32Array): void {
    if (lessMotion()) return this.set(xy, xy, 1);
    this.put(this.current(), xy, 0);
    this.began = performance.now();
    this.changed(true);
  }

  private put(start: Float32Array, end: Float32Array, between: number): void {
    [this.start, this.end, this.between] = [start, end, between];
    this.mixed = this.grid = null;
  }

  get moves(): boolean {
    return this.began >= 0;
  }

  /** Advances an animation to a time. */
  advance(now: number): void {
    if (!this.moves) return;
    const t = Math.min(1, Math.max(0, now - this.began) / MOVE_MS);
    if (t === 1) this.set(this.end, this.end, 1);
    else {
      this.between = t * t * (3 - 2 * t);
      this.mixed = this.grid = null;
      this.changed(true);
    }
  }

  /** The place of a row; null if it has none. */
  at(row: number): Point | null {
    const x = this.start[2 * row]! * (1 - this.between) + this.end[2 * row]! * this.between;
    const y = this.start[2 * row + 1]! * (1 - this.between) + this.end[2 * row + 1]! * this.between;
    return x === x && y === y ? [x, y] : null;
  }

  /** All places, interleaved. */
  current(): Float32Array {
    const { start, end, between } = this;
    if (start === end || between === 1) return end;
    return (this.mixed ??= start.map((each, i) => each + (end[i]! - each) * between));
  }

  get index(): GridIndex {
    return (this.grid ??= new GridIndex(this.current()));
  }
}
