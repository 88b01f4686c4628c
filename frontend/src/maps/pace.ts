// How many points are drawn per frame while something moves, so that it stays smooth without a
// graphics card. The order of points is random, so the first ones are a fair sample of all; all of
// them are drawn as soon as nothing moves.

const FEWEST = 30_000;
const SLOW_MS = 45, QUICK_MS = 24;

export class Pace {
  /** Points per frame, of all maps together. */
  limit = 250_000;
  private last = -Infinity;

  /** Learns from the time since the frame before, in which so many points were drawn. */
  learn(now: number, drawn: number): void {
    const passed = now - this.last;
    this.last = now;
    if (passed > 400 || drawn < 0.8 * this.limit) return; // the first frame, or no load
    if (passed > SLOW_MS) this.limit = Math.max(FEWEST, 0.75 * this.limit);
    if (passed < QUICK_MS) this.limit *= 1.25;
  }
}
