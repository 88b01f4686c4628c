// Requests to Python and events from it, over a websocket or the channel of a notebook's widget.
import { unique } from "./dom.ts";
import { assemble, dismantle, pack, unpack } from "./protocol.ts";
import type { EventName, Events, RequestName, Requests } from "./protocol.ts";

export type Listener = <E extends EventName>(name: E, event: Events[E]) => void;
export type Link = "connected" | "waiting" | "ended";

interface Pending {
  resolve: (value: any) => void;
  reject: (error: Error) => void;
}

/** The part that both kinds share: numbering requests, and matching replies with them. */
export abstract class Connection {
  /** The link was made, lost or ended for good; the text says why. */
  onLink: (link: Link, text: string) => void = () => {};
  private listener: Listener | null = null;
  private readonly early: Parameters<Listener>[] = []; // events before there was a listener
  private readonly pending = new Map<number, Pending>();
  private count = 0;

  ask<N extends RequestName>(name: N, args: Requests[N][0]): Promise<Requests[N][1]> {
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject });
      try {
        this.send({ id, ask: name, with: args });
      } catch (error) {
        this.pending.delete(id);
        reject(error as Error);
      }
    });
  }

  /** Sets who is told of events, also of those that have come already. */
  listen(listener: Listener): void {
    this.listener = listener;
    for (const [name, event] of this.early.splice(0)) listener(name, event);
  }

  abstract close(): void;
  protected abstract send(message: unknown): void;

  protected receive(message: any): void {
    if ("event" in message) {
      if (this.listener) this.listener(message.event, message.with);
      else this.early.push([message.event, message.with]);
      return;
    }
    const waiting = this.pending.get(message.id);
    this.pending.delete(message.id);
    if (message.error !== undefined) waiting?.reject(new Error(message.error));
    else waiting?.resolve(message.reply);
  }

  protected lose(text: string): void {
    for (const each of this.pending.values()) each.reject(new Error(text));
    this.pending.clear();
  }
}

const LOST = "The connection to the explorer is lost.";
const START_AGAIN = "start it again, and open the link that it prints.";
const NOT_RUNNING = `This link is not that of a running explorer. To go on, ${START_AGAIN}`;
const REFUSED = 4403; // the token or the origin is wrong, so a new attempt is no use
const DELAYS = [250, 500, 1000, 2000, 5000];

/** To the server of `manifoldry explore`; makes a lost link again. */
export class SocketConnection extends Connection {
  private socket: WebSocket | null = null;
  private failures = 0;
  private closed = false;

  constructor(private readonly address: string) {
    super();
  }

  open(): void {
    const socket = new WebSocket(this.address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.failures = 0;
      this.onLink("connected", "");
    };
    socket.onmessage = (message) => this.receive(unpack(message.data));
    socket.onclose = (event) => this.onClose(event);
    this.socket = socket;
  }

  private onClose(event: CloseEvent): void {
    this.lose(LOST);
    if (this.closed) return;
    if (event.code === REFUSED) {
      this.onLink("ended", NOT_RUNNING);
      return;
    }
    const delay = DELAYS[Math.min(this.failures++, DELAYS.length - 1)]!;
    this.onLink("waiting", `${LOST} Trying again. If it has ended, ${START_AGAIN}`);
    setTimeout(() => this.open(), delay);
  }

  close(): void {
    this.closed = true;
    this.socket?.close();
  }

  protected send(message: unknown): void {
    if (this.socket?.readyState !== WebSocket.OPEN) throw new Error(LOST);
    this.socket.send(pack(message));
  }
}

/** The part of an anywidget model that is used. */
export interface WidgetModel {
  send(content: unknown, callbacks?: unknown, buffers?: unknown[]): void;
  on(name: string, callback: (content: any, buffers: DataView[]) => void): void;
  off(name: string, callback?: unknown): void;
  get(name: string): any;
  set(name: string, value: unknown): void;
  save_changes(): void;
}

/** To the kernel of a notebook. All views of a widget share one channel, so replies name theirs. */
export class WidgetConnection extends Connection {
  private readonly view = unique("view");
  private readonly onMessage = (content: any, buffers: DataView[]) => {
    if (content.view === undefined || content.view === this.view) this.receive(assemble(content.message, buffers));
  };

  constructor(private readonly model: WidgetModel) {
    super();
    model.on("msg:custom", this.onMessage);
  }

  override async ask<N extends RequestName>(name: N, args: Requests[N][0]): Promise<Requests[N][1]> {
    const reply = await super.ask(name, args);
    if (name === "select") this.countChange();
    return reply;
  }

  /** marimo runs cells again only after a change of the model that comes from the page. */
  private countChange(): void {
    this.model.set("n_changes", this.model.get("n_changes") + 1);
    this.model.save_changes();
  }

  close(): void {
    this.model.off("msg:custom", this.onMessage);
    this.lose("The view was closed.");
  }

  protected send(message: unknown): void {
    const { header, buffers } = dismantle(message);
    const copies = buffers.map((b) => b.buffer.slice(b.byteOffset, b.byteOffset + b.byteLength));
    this.model.send({ view: this.view, message: header }, undefined, copies);
  }
}
