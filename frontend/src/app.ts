// The state of one page. Panels change it through signals and listen to those of others, so that no
// panel has to know another one.
import type { Connection } from "./connection.ts";
import type {
  Color, ColorBy, Evidence, EventName, Events, JobInfo, LabelInfo, MapInfo, Placed, Point, RequestName, Requests, Start,
} from "./protocol.ts";

/** A value whose changes can be listened to. */
export class Signal<T> {
  private readonly listeners = new Set<(value: T) => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const each of [...this.listeners]) each(value);
  }

  /** Calls now and after every change; returns a function that ends it. */
  watch(listener: (value: T) => void): () => void {
    listener(this.current);
    return this.onChange(listener);
  }

  onChange(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** Calls after any of several values has changed; returns a function that ends it. */
export function onAny(signals: { onChange(listener: () => void): () => void }[], run: () => void): () => void {
  const ends = signals.map((each) => each.onChange(run));
  return () => ends.forEach((end) => end());
}

/** What the pointer does on a map. */
export type Tool = "move" | "lasso" | "probe" | "line";

const KEPT_COLORS = 12; // of all rows each

export const NO_ROWS = new Uint32Array(0);

export class App {
  readonly start: Start;
  readonly maps: Signal<MapInfo[]>;
  /** Identifiers of the maps on the screen. */
  readonly shown: Signal<string[]>;
  /** The map that path, probe and evidence are about: the one that was touched last. */
  readonly active: Signal<string>;
  readonly labels: Signal<LabelInfo[]>;
  readonly colorBy: Signal<ColorBy>;
  /** Classes that the legend hides, by their index. */
  readonly hidden = new Signal<ReadonlySet<number>>(new Set());
  /** The row under the pointer, or -1. */
  readonly hovered = new Signal(-1);
  /** The row that was clicked, which stays in view until another is; or -1. */
  readonly pinned = new Signal(-1);
  readonly selection: Signal<Uint32Array>;
  readonly tool = new Signal<Tool>("move");
  /** Where the inverse is asked for, in positions as they are drawn. */
  readonly probe = new Signal<{ map: string; at: Point } | null>(null);
  readonly line = new Signal<{ map: string; at: Point[] } | null>(null);
  readonly placed = new Signal<Placed | null>(null);
  /** The new row under the pointer, on a map or in the list of their names; or -1. */
  readonly hoveredNew = new Signal(-1);
  /** Where along its homotopy each map is: a step, with a fraction between two; absent at the map itself. */
  readonly along = new Signal<ReadonlyMap<string, number>>(new Map());
  readonly jobs: Signal<JobInfo[]>;
  readonly evidence = new Signal<ReadonlyMap<string, Evidence>>(new Map());
  /** The map of a running job so far. */
  readonly preview = new Signal<{ job: string; xy: Float32Array } | null>(null);
  /** What the page does or has done, for everybody to read. */
  readonly said = new Signal("");
  /** Why the page cannot go on; empty while all is well. */
  readonly trouble = new Signal("");
  readonly dark = new Signal(false);
  /** Whether maps have the names of classes on them, and whether they zoom together. */
  readonly classNames = new Signal(true);
  readonly linkedZoom = new Signal(false);
  private hasEnded = false;
  private readonly colors = new Map<string, Promise<Color>>(); // the one used last is at the end
  private readonly askedEvidence = new Map<string, Promise<JobInfo | null>>(); // requests under way

  constructor(readonly connection: Connection, start: Start) {
    this.start = start;
    this.maps = new Signal(start.maps);
    this.shown = new Signal(start.maps.slice(0, 4).map((map) => map.id));
    this.active = new Signal(start.maps[0]?.id ?? "");
    this.labels = new Signal(start.labels);
    this.selection = new Signal(start.selection.length ? start.selection : NO_ROWS);
    const label = start.labels[0];
    this.colorBy = new Signal<ColorBy>(label ? { by: "label", name: label.name } : { by: "nothing" });
    this.jobs = new Signal(start.jobs);
    this.colorBy.onChange(() => this.hidden.set(new Set()));
    this.placed.onChange(() => this.hoveredNew.set(-1));
    connection.listen((name, event) => this.on(name, event));
  }

  /** A request; an error is said on the page and thrown. */
  async ask<N extends RequestName>(name: N, args: Requests[N][0]): Promise<Requests[N][1]> {
    try {
      return await this.connection.ask(name, args);
    } catch (error) {
      this.said.set((error as Error).message);
      throw error;
    }
  }

  map(id: string): MapInfo | undefined {
    return this.maps.value.find((each) => each.id === id);
  }

  /** The colors of a map's points; null for one color. Kept, as several maps share them. */
  color(map: string): Promise<Color> | null {
    const by = this.colorBy.value;
    if (by.by === "nothing") return null;
    const of = by.by === "evidence" ? map : null;
    const key = JSON.stringify([by, of]);
    let found = this.colors.get(key);
    if (!found) {
      found = this.ask("color", { by: by.by, name: by.name, map: of });
      found.catch(() => this.colors.delete(key)); // so that they are asked for again
    }
    this.colors.delete(key);
    this.colors.set(key, found);
    if (this.colors.size > KEPT_COLORS) this.colors.delete(this.colors.keys().next().value!);
    return found;
  }

  /** Evidence of a map, which is kept for all panels; or the work that finds it out. */
  askEvidence(map: string): Promise<JobInfo | null> {
    const found = this.askedEvidence.get(map);
    if (found) return found;
    const asked = this.ask("evidence", { map })
      .then(({ evidence, job }) => {
        if (evidence) this.keepEvidence(evidence);
        return job;
      })
      .finally(() => this.askedEvidence.delete(map));
    this.askedEvidence.set(map, asked);
    return asked;
  }

  private keepEvidence(evidence: Evidence): void {
    this.evidence.set(new Map(this.evidence.value).set(evidence.map, evidence));
  }

  /** The link was lost. What Python said when it ended says more. */
  lost(text: string): void {
    if (!this.hasEnded) this.trouble.set(text);
  }

  /** Takes away the probe and the line. */
  clearInverse(): void {
    this.probe.set(null);
    this.line.set(null);
  }

  /** Selects rows on all maps, and tells Python. */
  select(rows: Uint32Array): void {
    this.selection.set(rows);
    this.connection.ask("select", { rows }).catch(() => {}); // the page says that the link is lost
  }

  private on<E extends EventName>(name: E, event: Events[E]): void {
    const handlers: { [K in EventName]: (event: Events[K]) => void } = {
      job: (job) => this.jobs.set(replaced(this.jobs.value, job)),
      map: (map) => this.onMap(map),
      removed: ({ map }) => this.onRemoved(map),
      preview: (preview) => this.preview.set(preview),
      labels: ({ labels }) => this.onLabels(labels),
      evidence: (evidence) => this.keepEvidence(evidence),
      select: ({ rows }) => this.onSelected(rows),
      say: ({ text }) => this.said.set(text),
      ended: ({ text }) => this.onEnded(text),
    };
    (handlers[name] as (event: Events[E]) => void)(event);
  }

  private onEnded(text: string): void {
    this.hasEnded = true;
    this.trouble.set(text);
  }

  private onSelected(rows: Uint32Array): void {
    this.selection.set(rows);
    this.said.set(`${rows.length.toLocaleString("en-US")} ${rows.length === 1 ? "row" : "rows"} selected in Python`);
  }

  private onMap(map: MapInfo): void {
    const isNew = !this.map(map.id);
    this.maps.set(replaced(this.maps.value, map));
    if (isNew && this.shown.value.length < 4) this.shown.set([...this.shown.value, map.id]);
    if (!this.map(this.active.value)) this.active.set(map.id);
  }

  private onRemoved(id: string): void {
    this.maps.set(this.maps.value.filter((each) => each.id !== id));
    this.shown.set(this.shown.value.filter((each) => each !== id));
    if (this.active.value === id) this.active.set(this.shown.value[0] ?? this.maps.value[0]?.id ?? "");
  }

  private onLabels(labels: LabelInfo[]): void {
    for (const key of this.colors.keys()) if (key.includes('"label"')) this.colors.delete(key);
    this.labels.set(labels);
    const by = this.colorBy.value;
    if (by.by === "label") this.colorBy.set({ ...by }); // asked for again
  }
}

/** The list with one entry replaced, or added at the end. */
function replaced<T extends { id: string }>(list: T[], entry: T): T[] {
  const known = list.some((each) => each.id === entry.id);
  return known ? list.map((each) => (each.id === entry.id ? entry : each)) : [...list, entry];
}
