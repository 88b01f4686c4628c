// What is drawn above the points of a map: names of classes, rings around rows, new points, the probe,
// and a lasso or line in progress.
import { UNLIKE } from "../protocol.ts";
import type { Point } from "../protocol.ts";
import type { Camera } from "./camera.ts";
import type { PlacedName } from "./class_names.ts";
import { newColor, shownColor } from "./colors.ts";

export interface Draft {
  kind: "lasso" | "line";
  at: Point[];
}

export interface NewRows {
  xy: Float32Array;
  novelty: Float32Array | null;
  hovered: number; // or -1
}

/** Everything in coordinates of the map. */
export interface OverlayContent {
  camera: Camera;
  dark: boolean;
  radius: number; // of a point, in pixels
  names: PlacedName[];
  hovered: Point | null;
  pinned: Point | null;
  placed: NewRows | null;
  probe: Point | null;
  line: Point[] | null;
  draft: Draft | null;
}

type Pen = CanvasRenderingContext2D;
const MOST_DOTS = 50;
const DIAMOND_PX = 7; // from its center to its corners

export function drawOverlay(canvas: HTMLCanvasElement, content: OverlayContent): void {
  const { camera, dark } = content;
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  const width = Math.round(camera.width * ratio), height = Math.round(camera.height * ratio);
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d")!;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, camera.width, camera.height);
  const ink = dark ? "#f2f5f6" : "#15191c", paper = dark ? "#101417" : "#ffffff";
  drawNames(pen, content, paper);
  if (content.placed) drawNew(pen, content, content.placed, ink, paper);
  if (content.line) drawLine(pen, content.line.map((at) => camera.toScreen(...at)), ink, paper, true);
  if (content.draft) drawDraft(pen, content, content.draft, ink, paper);
  if (content.probe) drawProbe(pen, camera.toScreen(...content.probe), ink, paper);
  if (content.hovered) drawRing(pen, camera.toScreen(...content.hovered), content.radius + 4, 1.5, ink, paper);
  if (content.pinned) drawRing(pen, camera.toScreen(...content.pinned), content.radius + 5, 2.5, ink, paper);
}

/** Draws a path twice: wide in the color of the background, then in its own. */
function outlined(pen: Pen, width: number, ink: string, paper: string, path: () => void): void {
  for (const [color, extra] of [[paper, 2.5], [ink, 0]] as const) {
    pen.strokeStyle = color;
    pen.lineWidth = width + extra;
    pen.beginPath();
    path();
    pen.stroke();
  }
}

function drawRing(pen: Pen, [x, y]: Point, radius: number, width: number, ink: string, paper: string): void {
  outlined(pen, width, ink, paper, () => pen.arc(x, y, radius, 0, 2 * Math.PI));
}

function drawProbe(pen: Pen, [x, y]: Point, ink: string, paper: string): void {
  outlined(pen, 2, ink, paper, () => {
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]] as const) {
      pen.moveTo(x + 4 * dx, y + 4 * dy);
      pen.lineTo(x + 13 * dx, y + 13 * dy);
    }
  });
  drawRing(pen, [x, y], 8, 1.5, ink, paper);
}

const NAME_PX = 16; // height of a line
const MOVES = [0, -1, 1, -2, 2]; // lines by which a name is moved to leave the others free

/** Names that would cover others even when they are moved are left out; the legend has them all. */
function drawNames(pen: Pen, { camera, names, dark }: OverlayContent, paper: string): void {
  Object.assign(pen, {
    font: "600 13px system-ui, sans-serif", textAlign: "center", textBaseline: "middle",
    lineJoin: "round", lineWidth: 4, strokeStyle: paper,
  });
  const taken: [x: number, y: number, half: number][] = [];
  for (const { name, color, x, y } of names) {
    const text = name.length > 24 ? `${name.slice(0, 23)}…` : name;
    const half = pen.measureText(text).width / 2 + 3;
    const [center, own] = camera.toScreen(x, y);
    if (center < 0 || center > camera.width) continue;
    const px = Math.min(camera.width - half, Math.max(half, center)); // not cut off by the edge
    const isFree = (py: number) =>
      taken.every(([u, v, w]) => Math.abs(u - px) > w + half || Math.abs(v - py) >= NAME_PX);
    const py = MOVES.map((lines) => own + lines * NAME_PX).find(isFree);
    if (py === undefined) continue;
    taken.push([px, py, half]);
    pen.strokeText(text, px, py);
    // Between its color and that of the text, so that names in pale colors can be read.
    for (const fill of [shownColor(color, dark), dark ? "#ffffff99" : "#00000099"]) {
      pen.fillStyle = fill;
      pen.fillText(text, px, py);
    }
  }
}

/** Hollow if they are unlike the data that the map was fitted to. */
function drawNew(pen: Pen, { camera, dark }: OverlayContent, placed: NewRows, ink: string, paper: string): void {
  const fill = newColor(dark);
  for (let i = 0; i < placed.xy.length / 2; i++) {
    const at = camera.toScreen(placed.xy[2 * i]!, placed.xy[2 * i + 1]!);
    const hollow = (placed.novelty?.[i] ?? 0) > UNLIKE;
    outlined(pen, hollow ? 2 : 1.5, hollow ? fill : ink, hollow ? ink : paper, () => diamond(pen, at));
    pen.fillStyle = fill;
    if (!hollow) pen.fill();
    if (i === placed.hovered) drawRing(pen, at, DIAMOND_PX + 5, 2.5, ink, paper);
  }
}

function diamond(pen: Pen, [x, y]: Point): void {
  pen.moveTo(x, y - DIAMOND_PX);
  pen.lineTo(x + DIAMOND_PX, y);
  pen.lineTo(x, y + DIAMOND_PX);
  pen.lineTo(x - DIAMOND_PX, y);
  pen.closePath();
}

/** The new row whose diamond is at a place on the screen, the one that is drawn last; or -1. */
export function newRowAt(camera: Camera, xy: Float32Array, px: number, py: number): number {
  for (let i = xy.length / 2 - 1; i >= 0; i--) {
    const [x, y] = camera.toScreen(xy[2 * i]!, xy[2 * i + 1]!);
    if (Math.abs(x - px) + Math.abs(y - py) <= DIAMOND_PX + 1) return i;
  }
  return -1;
}

function trace(pen: Pen, at: Point[]): void {
  at.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
}

function drawLine(pen: Pen, at: Point[], ink: string, paper: string, dots: boolean): void {
  outlined(pen, 2, ink, paper, () => trace(pen, at));
  if (!dots) return;
  const step = Math.max(1, Math.ceil(at.length / MOST_DOTS));
  for (let i = 0; i < at.length; i += step) {
    pen.beginPath();
    pen.arc(...at[i]!, i === 0 ? 5 : 3, 0, 2 * Math.PI);
    pen.fillStyle = i === 0 ? paper : ink; // the first one is hollow, to show the direction
    pen.fill();
    if (i === 0) pen.stroke();
  }
}

function drawDraft(pen: Pen, { camera, dark }: OverlayContent, draft: Draft, ink: string, paper: string): void {
  const at = draft.at.map(([x, y]) => camera.toScreen(x, y));
  if (draft.kind === "line") return drawLine(pen, at, ink, paper, false);
  pen.beginPath();
  trace(pen, at);
  pen.closePath();
  pen.fillStyle = dark ? "#86b9f233" : "#1457a322";
  pen.fill();
  pen.setLineDash([5, 4]);
  pen.lineWidth = 1.5;
  pen.strokeStyle = ink;
  pen.stroke();
  pen.setLineDash([]);
}
