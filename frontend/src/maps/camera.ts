// What part of a map is on the screen. Maps are in [-1, 1], with the second coordinate upwards.
import type { Point } from "../protocol.ts";

const FILLED = 0.94; // part of the panel that the whole map takes
const LEAST = 0.5, MOST = 5000;

export class Camera {
  x = 0;
  y = 0;
  zoom = 1;
  width = 1;
  height = 1;

  /** Pixels of the page per unit of the map. */
  get scale(): number {
    return (Math.min(this.width, this.height) / 2) * FILLED * this.zoom;
  }

  toScreen(x: number, y: number): Point {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap(px: number, py: number): Point {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  pan(dx: number, dy: number): void {
    this.look(this.x - dx / this.scale, this.y + dy / this.scale, this.zoom);
  }

  /** Zooms so that what is at a pixel stays there. */
  zoomAt(px: number, py: number, factor: number): void {
    const [x, y] = this.toMap(px, py);
    this.zoom = Math.min(MOST, Math.max(LEAST, this.zoom * factor));
    const [u, v] = this.toMap(px, py);
    this.look(this.x + x - u, this.y + y - v, this.zoom);
  }

  /** The center stays on the map, so that it cannot get lost. */
  look(x: number, y: number, zoom: number): void {
    this.x = Math.min(1.2, Math.max(-1.2, x));
    this.y = Math.min(1.2, Math.max(-1.2, y));
    this.zoom = zoom;
  }

  reset(): void {
    this.look(0, 0, 1);
  }

  /** Moves as little as brings a place into view. */
  include(x: number, y: number): boolean {
    const [px, py] = this.toScreen(x, y);
    const margin = Math.min(30, this.width / 4);
    const dx = Math.max(0, margin - px) - Math.max(0, px - this.width + margin);
    const dy = Math.max(0, margin - py) - Math.max(0, py - this.height + margin);
    if (dx || dy) this.pan(dx, dy);
    return Boolean(dx || dy);
  }
}
