// Arrays on the graphics processor. They are found by the array itself, so nothing has to say that
// one is new, and all are sent again after a lost context.

export type GpuArray = Float32Array | Uint16Array | Uint32Array;

const KEPT_BYTES = 256 * 2 ** 20; // a path of 1,000,000 rows has 8 MiB per step

export function program(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram {
  const made = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]] as const) {
    const shader = gl.createShader(type)!;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
    gl.deleteShader(shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
    const shaders = gl.getAttachedShaders(made) ?? [];
    throw new Error(shaders.map((each) => gl.getShaderInfoLog(each)).join("\n") || "the shaders do not link");
  }
  return made;
}

/** Buffers and palettes by the arrays that they hold; forgets those that were not used for long. */
export class GpuStore {
  private readonly buffers = new Map<GpuArray, WebGLBuffer>(); // the one used last is at the end
  private readonly palettes = new WeakMap<Uint8Array, WebGLTexture>();
  private bytes = 0;

  constructor(private readonly gl: WebGL2RenderingContext) {}

  /** Binds an array to a target, and sends it before if it is not there yet. */
  bind(target: number, array: GpuArray): void {
    const { gl, buffers } = this;
    let buffer = buffers.get(array);
    const isNew = !buffer;
    buffer ??= gl.createBuffer();
    buffers.delete(array);
    buffers.set(array, buffer);
    gl.bindBuffer(target, buffer);
    if (!isNew) return;
    gl.bufferData(target, array, gl.STATIC_DRAW);
    this.bytes += array.byteLength;
    this.forget();
  }

  /** A picture is made of four arrays, and those used last are never forgotten. */
  private forget(): void {
    for (const [array, buffer] of this.buffers) {
      if (this.bytes <= KEPT_BYTES || this.buffers.size <= 4) return;
      this.gl.deleteBuffer(buffer);
      this.buffers.delete(array);
      this.bytes -= array.byteLength;
    }
  }

  /** Binds a texture of colors, 256 in each line. */
  palette(colors: Uint8Array): void {
    const { gl } = this;
    let texture = this.palettes.get(colors);
    const isNew = !texture;
    texture ??= gl.createTexture();
    this.palettes.set(colors, texture);
    gl.bindTexture(gl.TEXTURE_2D, texture);
    if (!isNew) return;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, colors.length / 1024, 0, gl.RGBA, gl.UNSIGNED_BYTE, colors);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }
}
