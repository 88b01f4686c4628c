// Sends a file in pieces, as one message has a limit and progress is to be seen.
import type { App } from "../app.ts";

const PIECE = 1 << 20;

export class Upload {
  private canceled = false;
  private id: string | null = null; // from the first reply

  constructor(private readonly app: App, private readonly file: File) {}

  cancel(): void {
    this.canceled = true;
  }

  /** The identifier of the uploaded file, or null if it was canceled. */
  async run(progress: (fraction: number) => void): Promise<string | null> {
    this.check();
    try {
      await this.send(progress);
    } catch (error) {
      this.discard();
      throw error;
    }
    if (!this.canceled) return this.id;
    this.discard();
    return null;
  }

  private async send(progress: (fraction: number) => void): Promise<void> {
    const { name, size } = this.file;
    for (let offset = 0; offset < size && !this.canceled; ) {
      const bytes = new Uint8Array(await this.file.slice(offset, offset + PIECE).arrayBuffer());
      const reply = await this.app.ask("upload", { id: this.id, name, offset, size, bytes });
      this.id = reply.id;
      offset += bytes.length;
      progress(offset / size);
    }
  }

  /** Python does not have to keep a part of a file. */
  private discard(): void {
    if (this.id !== null) this.app.connection.ask("discard", { upload: this.id }).catch(() => {}); // it is gone already
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
