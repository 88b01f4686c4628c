// How many points are drawn per frame while something moves, so that it stays smooth without a
// graphics card. The order of points is random, so the first ones are a fair sample of all; all of
// them are drawn as soon as nothing moves.

const FEWEST = 40_000;
const SLOW_MS = 60, QUICK_MS = 36; // for two pictures, as one waits for the one before

export class Pace {
  /** Points per frame, of all maps together. */
  limit = 250_000;

  /** Learns from the time after which so many points were drawn. */
  learn(passed: number, drawn: number): void {
    if (drawn < 0.8 * this.limit) return; // no load
    if (passed > SLOW_MS) this.limit = Math.max(FEWEST, 0.75 * this.limit);
    if (passed < QUICK_MS) this.limit *= 1.25;
  }
}
