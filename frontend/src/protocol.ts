// What page and Python say to each other. A request names an action and its arguments, and gets one
// reply; events come unasked. Arrays travel as binary buffers beside the JSON, in which
// {"$array": index, "dtype": name} stands for them. manifoldry/explorer/messages.py is the other end.

export type Point = [number, number];

/** A step of a homotopy that was kept, such as "λ = 0.12". */
export interface Step {
  label: string;
  parameter: number;
}

export interface MapInfo {
  id: string;
  name: string;
  method: string | null; // name on the command line; null for a map from elsewhere
  n_components: number;
  shown: [number, number]; // the two coordinates that are drawn
  redrawn: number; // changes when positions have changed, so that they are asked for again
  steps: Step[]; // empty without a homotopy
  own_step: number; // the one that is the map itself, often the last
  can_invert: boolean;
  can_place: boolean;
  can_save: boolean; // whether it has a model
  why_not: string; // why it cannot do these two; empty if it can
  evidence: "none" | "ready"; // whether metrics are known
  evidence_colors: string[]; // names for ask("color", {by: "evidence", ...})
  n_unplaced: number; // rows without a position
}

export interface LabelInfo {
  name: string;
  kind: "classes" | "values";
  own: boolean; // made on this page, so it can be changed
}

export type JobState = "waiting" | "running" | "done" | "failed" | "canceled";

export interface JobInfo {
  id: string;
  what: string; // "t-SNE of 1,797 rows"
  kind: "map" | "evidence" | "stability";
  map: string | null;
  state: JobState;
  fraction: number | null; // null if it is not known
  status: string; // "step 250 of 750; value 1.93", or the error
  seconds: number;
  can_stop: boolean; // whether it can end early and keep its map
}

export interface MethodInfo {
  name: string; // "tsne"
  title: string; // "t-SNE"
  use: string; // "clusters, for a picture; ..."
  has_homotopy: boolean;
  settings: { name: string; value: string }[]; // usual parameters with their defaults, as text
}

/** How a row of data is shown. */
export type RowKind = "image" | "curve" | "table";

/** Reply to `start`, and after every new connection. */
export interface Start {
  title: string;
  n: number;
  n_features: number;
  feature_names: string[]; // "column 3" if the data have no names
  has_data: boolean; // without data there are no features, thumbnails and metrics
  labels: LabelInfo[];
  row_kind: RowKind;
  image: { shape: number[]; dark_ink: boolean; low: number; high: number } | null;
  maps: MapInfo[];
  jobs: JobInfo[];
  selection: Uint32Array; // rows that are selected already, here or by Python
  methods: MethodInfo[];
  notes: string[];
  upload_bytes: number; // the largest file that is taken
  hosted: "page" | "notebook";
  version: string;
}

export type ColorBy =
  | { by: "nothing" }
  | { by: "label"; name: string }
  | { by: "feature"; name: string }
  | { by: "evidence"; name: string }; // a color of its own on each map

export interface ClassColor {
  name: string;
  count: number;
  color: string; // "#106dff"
  missing?: boolean; // rows without a label
}

export type Color =
  | { kind: "classes"; codes: Uint16Array; classes: ClassColor[] }
  // NaN where missing. `scale` names the ramp: "trust" has a warning color at its low end.
  | { kind: "values"; values: Float32Array; low: number; high: number; scale: "values" | "trust"; note: string };

export interface RowFacts {
  row: number; // counted from 0
  name: string; // "row 3 (iris-17)"
  labels: [string, string][];
  features: [string, number][]; // those in which the row is least like the others; all if few
  pixels: Uint8Array | null; // of an image, in the order of image.shape
  values: Float32Array | null; // of a curve
}

export interface Matches {
  rows: Uint32Array;
  total: number; // more than rows.length if there are too many to list
  text: string; // "12 rows whose species is setosa"
}

/** A distance from the map above this is near its edge, and above the next one off it: extrapolated. */
export const NEAR_THE_EDGE = 1.5;
export const OFF_THE_MAP = 2;

/** Data at positions of a map, from its inverse. */
export interface Inverted {
  data: Float64Array; // (number of positions) × n_features
  distance: Float32Array; // from the map, relative to its points; see OFF_THE_MAP
  cautions: string[]; // one per position; empty where the position is on the map
  nearest: Uint32Array; // the row that is nearest on the map
  nearest_data: Float64Array | null; // its values, if the data are here; one row per position
  notable: Uint32Array[]; // for each position, features that are least like the mean of the data
  low: Float64Array; // smallest and largest value of each feature in the data
  high: Float64Array;
}

/** Rows with a novelty above this are unlike the data that the maps were fitted to. */
export const UNLIKE = 2;

export interface Placed {
  names: string[]; // of the first rows, if there are many
  xy: Record<string, Float32Array>; // positions by map, interleaved
  novelty: Float32Array | null; // see UNLIKE; null if no map knows it
  skipped: Record<string, string>; // maps that cannot place them, and why
  notes: string[];
}

export interface Difference {
  name: string;
  difference: number; // of the means, in standard deviations
  inside: number;
  outside: number;
}

export interface Distinguished {
  n: number;
  features: Difference[]; // the largest first
  labels: { label: string; value: string; inside: number; outside: number }[]; // fractions
  text: string; // a sentence
}

export interface Metric {
  name: string;
  title: string;
  help: string;
  value: number;
  low: number | null; // interval if it was estimated from a sample
  high: number | null;
  larger_is_better: boolean | null;
}

export interface Evidence {
  map: string;
  grade: "good" | "fair" | "poor";
  sentences: string[];
  metrics: Metric[];
  spectrum: { values: number[]; kept: number; title: string } | null;
  redundancy: number[]; // part of each coordinate that those before it do not predict
  redundant_below: number;
  // Pairs of rows: distance on the map by distance in the data, row by row.
  shepard: { counts: Uint32Array; bins: number; data_max: number; map_max: number; correlation: number } | null;
  coranking: { sizes: number[]; kept: number[]; area: number } | null;
  stability: { verdict: string; variability: number; n_refits: number } | null;
  sampled: string; // "metrics are estimated from 400 rows"; empty if from all
}

/** All requests: name, arguments, reply. */
export interface Requests {
  start: [Record<string, never>, Start];
  positions: [{ map: string; step: number | null }, { xy: Float32Array }]; // interleaved, in [-1, 1]
  coordinates: [{ map: string; shown: [number, number] }, MapInfo]; // draw other coordinates
  color: [{ by: ColorBy["by"]; name: string; map: string | null }, Color];
  rows: [{ rows: number[] }, { rows: RowFacts[] }];
  search: [{ text: string }, Matches];
  invert: [{ map: string; at: Point[] }, Inverted]; // positions as they are drawn
  upload: [
    { id: string | null; name: string; offset: number; size: number; bytes: Uint8Array },
    { id: string; received: number },
  ];
  discard: [{ upload: string }, Record<string, never>]; // of a file that is not wanted any more
  place: [{ upload: string } | { text: string }, Placed];
  distinguish: [{ rows: Uint32Array }, Distinguished];
  label: [{ rows: Uint32Array; column: string; value: string }, { name: string; saved: string }];
  export: [{ rows: Uint32Array }, { name: string; text: Uint8Array; note: string }]; // what was left out
  select: [{ rows: Uint32Array }, Record<string, never>]; // tells Python in a notebook
  fit: [{ method: string; settings: Record<string, string>; homotopy: boolean }, JobInfo];
  // Known, or the work that finds it out.
  evidence: [{ map: string }, { evidence: Evidence | null; job: JobInfo | null }];
  stability: [{ map: string }, JobInfo];
  cancel: [{ job: string }, JobInfo]; // ends it; its map is lost
  stop: [{ job: string }, JobInfo]; // ends it early; its map so far is kept
  keep: [{ map: string }, { name: string; bytes: Uint8Array }]; // the model as a file
  remove: [{ map: string }, Record<string, never>];
}

/** What Python tells all pages unasked. */
export interface Events {
  job: JobInfo;
  map: MapInfo; // new or changed
  removed: { map: string };
  preview: { job: string; xy: Float32Array }; // the map of a running job so far
  labels: { labels: LabelInfo[] };
  evidence: Evidence;
  select: { rows: Uint32Array }; // Python selects rows
  say: { text: string };
  ended: { text: string }; // the explorer ends
}

export type RequestName = keyof Requests;
export type EventName = keyof Events;

type Typed = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array;
const TYPES = {
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array,
} as const;
type TypeName = keyof typeof TYPES;

function typeName(array: Typed): TypeName {
  for (const name of Object.keys(TYPES) as TypeName[]) if (array instanceof TYPES[name]) return name;
  throw new TypeError("an array of this type cannot be sent");
}

/** A message as JSON, and the buffers of its arrays. */
export function dismantle(message: unknown): { header: unknown; buffers: ArrayBufferView[] } {
  const buffers: ArrayBufferView[] = [];
  const text = JSON.stringify(message, (_, value) => {
    if (!ArrayBuffer.isView(value)) return value;
    buffers.push(value);
    return { $array: buffers.length - 1, dtype: typeName(value as Typed) };
  });
  return { header: JSON.parse(text), buffers };
}

/** The message again. Numbers that JSON does not have arrive as null. */
export function assemble(header: unknown, buffers: DataView[]): any {
  if (Array.isArray(header)) return header.map((each) => assemble(each, buffers));
  if (header === null || typeof header !== "object") return header;
  const entries = header as Record<string, unknown>;
  if ("$array" in entries) {
    const view = buffers[entries.$array as number]!;
    const Type = TYPES[entries.dtype as TypeName];
    const bytes = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
    return new Type(bytes as ArrayBuffer);
  }
  return Object.fromEntries(Object.entries(entries).map(([key, value]) => [key, assemble(value, buffers)]));
}

/** A message as one binary frame: length of the header, header, and buffers, in multiples of 8 bytes. */
export function pack(message: unknown): Uint8Array<ArrayBuffer> {
  const { header, buffers } = dismantle(message);
  const head = new TextEncoder().encode(JSON.stringify({ message: header, sizes: buffers.map((b) => b.byteLength) }));
  const padded = (size: number) => Math.ceil(size / 8) * 8;
  const start = padded(4 + head.length);
  const frame = new Uint8Array(start + buffers.reduce((sum, b) => sum + padded(b.byteLength), 0));
  new DataView(frame.buffer).setUint32(0, head.length, true);
  frame.set(head, 4);
  let at = start;
  for (const buffer of buffers) {
    frame.set(new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength), at);
    at += padded(buffer.byteLength);
  }
  return frame;
}

export function unpack(frame: ArrayBuffer): any {
  const size = new DataView(frame).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(frame, 4, size)));
  let at = Math.ceil((4 + size) / 8) * 8;
  const views = (head.sizes as number[]).map((length) => {
    const view = new DataView(frame, at, length);
    at += Math.ceil(length / 8) * 8;
    return view;
  });
  return assemble(head.message, views);
}
