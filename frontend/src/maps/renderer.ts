// Draws the points of all maps with one WebGL context: browsers allow only a few of them, and colors
// and orders are shared by maps. Each map is a rectangle of one canvas behind all panels, and only
// the rectangles that have changed are drawn again.
import type { Camera } from "./camera.ts";
import type { Coloring } from "./coloring.ts";
import { rgb } from "./colors.ts";
import { GpuStore, program } from "./gpu.ts";
import type { Order } from "./order.ts";
import { pointStyle } from "./point_style.ts";
import { FRAGMENT, VERTEX } from "./shaders.ts";

/** What is on one map. */
export interface Picture {
  start: Float32Array;
  end: Float32Array;
  between: number; // 0 at start, 1 at end
  coloring: Coloring;
  order: Order;
  camera: Camera;
}

/** Where a map is on the canvas, in pixels of the page. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

const NAMES = ["between", "scale", "shift", "size", "opacity", "fading", "edge"] as const;
const LOST = "The browser took the graphics context away; the maps are drawn again when it is back.";

export class Renderer {
  frames = 0; // pictures of maps that were drawn
  /** The context is back after it was lost, so everything has to be drawn again. */
  onRestored: () => void = () => {};
  onLost: (text: string) => void = () => {};
  private readonly gl: WebGL2RenderingContext | null;
  private store: GpuStore | null = null;
  private uniforms = {} as Record<(typeof NAMES)[number], WebGLUniformLocation | null>;
  private marks: WebGLSync[] = [];
  private ratio = 1;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.gl = canvas.getContext("webgl2", { preserveDrawingBuffer: true, antialias: false, depth: false });
    canvas.addEventListener("webglcontextlost", this.lost);
    canvas.addEventListener("webglcontextrestored", this.restored);
    if (this.gl) this.prepare(this.gl);
  }

  /** False without WebGL2. */
  get works(): boolean {
    return this.gl !== null;
  }

  /** Whether the window has moved to a screen with other pixels since the last resize. */
  get outdated(): boolean {
    return this.ratio !== pixelRatio();
  }

  /** Ends a picture, whose drawing may take longer than giving the orders for it. */
  mark(): void {
    const sync = this.gl?.fenceSync(this.gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (sync) this.marks.push(sync);
    this.gl?.flush();
  }

  /** How many pictures are not done yet. */
  unfinished(): number {
    const { gl, marks } = this;
    const isDone = (mark: WebGLSync) => gl?.getSyncParameter(mark, gl.SYNC_STATUS) !== gl?.UNSIGNALED;
    while (gl && marks.length && isDone(marks[0]!)) gl.deleteSync(marks.shift()!);
    return marks.length;
  }

  private prepare(gl: WebGL2RenderingContext): void {
    const points = program(gl, VERTEX, FRAGMENT);
    for (const name of NAMES) this.uniforms[name] = gl.getUniformLocation(points, name);
    this.store = new GpuStore(gl);
    gl.useProgram(points);
    gl.enable(gl.SCISSOR_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    for (const place of [0, 1, 2]) gl.enableVertexAttribArray(place);
  }

  private readonly lost = (event: Event) => {
    event.preventDefault(); // without this it does not come back
    this.store = null;
    this.marks = [];
    this.onLost(LOST);
  };

  private readonly restored = () => {
    if (this.gl) this.prepare(this.gl);
    this.onLost("");
    this.onRestored();
  };

  /** The size of the canvas in pixels of the page. This makes it empty. */
  resize(width: number, height: number): void {
    this.ratio = pixelRatio();
    this.canvas.width = Math.max(1, Math.round(width * this.ratio));
    this.canvas.height = Math.max(1, Math.round(height * this.ratio));
    this.clear({ left: 0, top: 0, width, height });
  }

  clear(box: Box): void {
    const { gl } = this;
    if (!gl) return;
    this.cut(gl, box);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  /** Draws one map with at most so many of its points, and returns how many they are. */
  draw(picture: Picture, box: Box, limit: number, dark: boolean): number {
    const { gl, store } = this;
    if (!gl || !store) return 0;
    this.clear(box);
    this.bind(gl, store, picture);
    this.place(gl, picture.camera, box);
    const { rows, faded } = picture.order;
    const pale = Math.min(faded, limit), full = Math.min(rows.length - faded, limit);
    const style = pointStyle(faded ? pale + full : full, picture.camera);
    const size = 2 * style.radius * this.ratio + 1;
    gl.uniform1f(this.uniforms.size, size);
    gl.uniform1f(this.uniforms.between, picture.between);
    const edge = 0.6 * Math.min(1, Math.max(0, style.radius - 2.5));
    gl.uniform4f(this.uniforms.edge, ...unit(dark ? "#12171a" : "#ffffff"), edge);
    this.drawPart(gl, 0, pale, 0.6 * style.opacity, dark ? "#39434a" : "#cfd4d7", 0.88);
    this.drawPart(gl, faded, full, faded ? Math.max(0.5, style.opacity) : style.opacity, "#000000", 0);
    this.frames++;
    return pale + full;
  }

  private drawPart(
    gl: WebGL2RenderingContext, first: number, count: number, opacity: number, pale: string, fading: number,
  ): void {
    if (!count) return;
    gl.uniform1f(this.uniforms.opacity, opacity);
    gl.uniform4f(this.uniforms.fading, ...unit(pale), fading);
    gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 4 * first);
  }

  private bind(gl: WebGL2RenderingContext, store: GpuStore, { start, end, coloring, order }: Picture): void {
    store.bind(gl.ARRAY_BUFFER, start);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    store.bind(gl.ARRAY_BUFFER, end);
    gl.vertexAttribPointer(1, 2, gl.FLOAT, false, 0, 0);
    store.bind(gl.ARRAY_BUFFER, coloring.codes);
    gl.vertexAttribIPointer(2, 1, gl.UNSIGNED_SHORT, 0, 0);
    store.bind(gl.ELEMENT_ARRAY_BUFFER, order.rows);
    store.palette(coloring.palette);
  }

  /** The viewport is larger than the box, as points whose center is outside a viewport are not drawn. */
  private place(gl: WebGL2RenderingContext, camera: Camera, box: Box): void {
    const [left, bottom, width, height] = this.pixels(box);
    const margin = Math.ceil(10 * this.ratio);
    gl.viewport(left - margin, bottom - margin, width + 2 * margin, height + 2 * margin);
    const sx = (2 * camera.scale * this.ratio) / (width + 2 * margin);
    const sy = (2 * camera.scale * this.ratio) / (height + 2 * margin);
    gl.uniform2f(this.uniforms.scale, sx, sy);
    gl.uniform2f(this.uniforms.shift, -camera.x * sx, -camera.y * sy);
  }

  private cut(gl: WebGL2RenderingContext, box: Box): void {
    gl.scissor(...this.pixels(box));
  }

  /** Left, bottom, width and height in pixels of the canvas. */
  private pixels(box: Box): [number, number, number, number] {
    const [left, top, right, bottom] = [box.left, box.top, box.left + box.width, box.top + box.height]
      .map((each) => Math.round(each * this.ratio)) as [number, number, number, number];
    return [left, this.canvas.height - bottom, right - left, bottom - top];
  }

  close(): void {
    this.canvas.removeEventListener("webglcontextlost", this.lost);
    this.canvas.removeEventListener("webglcontextrestored", this.restored);
    this.store = null;
    this.gl?.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

function pixelRatio(): number {
  return Math.max(1, window.devicePixelRatio || 1);
}

function unit(hex: string): [number, number, number] {
  return rgb(hex).map((each) => each / 255) as [number, number, number];
}
