// How large and how opaque points are, so that few are easy to hit and many show their density.
import type { Camera } from "./camera.ts";

export interface PointStyle {
  radius: number; // in pixels of the page
  opacity: number;
}

const SMALLEST = 0.7, LARGEST = 6;

/** For n points on a map: by the space that each has, with half of the zoom counted. */
export function pointStyle(n: number, camera: Camera): PointStyle {
  const area = Math.min(camera.width, camera.height) ** 2;
  const room = (area * camera.zoom) / Math.max(1, n);
  const radius = Math.min(LARGEST, Math.max(SMALLEST, Math.sqrt(0.05 * room)));
  // How often points would cover the space: above 1 they have to be translucent.
  const covering = (Math.PI * radius ** 2 * n) / (area * camera.zoom ** 2);
  const opacity = Math.min(0.9, Math.max(0.05, 0.62 / covering));
  return { radius, opacity };
}
