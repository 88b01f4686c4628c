// Sends a file in pieces, as one message has a limit and progress is to be seen.
import type { App } from "../app.ts";

const PIECE = 1 << 20;

export class Upload {
  private canceled = false;

  constructor(private readonly app: App, private readonly file: File) {}

  cancel(): void {
    this.canceled = true;
  }

  /** The identifier of the uploaded file, or null if it was canceled. */
  async run(progress: (fraction: number) => void): Promise<string | null> {
    this.check();
    const { name, size } = this.file;
    let id: string | null = null;
    for (let offset = 0; offset < size; ) {
      if (this.canceled) return null;
      const bytes = new Uint8Array(await this.file.slice(offset, offset + PIECE).arrayBuffer());
      const reply: { id: string; received: number } = await this.app.ask("upload", { id, name, offset, size, bytes });
      id = reply.id;
      offset += bytes.length;
      progress(offset / size);
    }
    return this.canceled ? null : id;
  }

  private check(): void {
    const most = this.app.start.upload_bytes;
    if (this.file.size === 0) throw new Error(`${this.file.name} is empty.`);
    if (this.file.size <= most) return;
    throw new Error(
      `${this.file.name} has ${megabytes(this.file.size)}, but at most ${megabytes(most)} can be uploaded. ` +
      "Split it into parts, or place its rows in Python with the transform of the model.",
    );
  }
}

function megabytes(size: number): string {
  const millions = size / 1e6;
  return `${millions < 10 ? millions.toFixed(1) : Math.round(millions).toLocaleString("en-US")} MB`;
}
