// What is known of single rows: asked for in batches, kept, and shown as a card.
import type { App } from "../app.ts";
import { element, perFrame, plain } from "../dom.ts";
import type { RowFacts } from "../protocol.ts";
import { drawRow } from "./drawing.ts";

const KEPT_ROWS = 2000;
const FEATURES_SHORT = 4;
const FEATURES_LONG = 12;
const LABELS_SHORT = 4;

interface Waiting {
  row: number;
  resolve: (facts: RowFacts) => void;
  reject: (error: unknown) => void;
}

/** Facts of rows; those that are asked for within a frame go into one request. */
export class RowFactsCache {
  private readonly kept = new Map<number, Promise<RowFacts>>(); // the one that was used last is the last
  private waiting: Waiting[] = [];
  private readonly sendSoon = perFrame(() => this.send());

  constructor(private readonly app: App) {
    app.labels.onChange(() => this.kept.clear()); // facts have the labels of a row
  }

  get(row: number): Promise<RowFacts> {
    const facts = this.kept.get(row) ?? this.request(row);
    this.kept.delete(row);
    this.kept.set(row, facts);
    if (this.kept.size > KEPT_ROWS) this.kept.delete(this.kept.keys().next().value!);
    return facts;
  }

  private request(row: number): Promise<RowFacts> {
    const facts = new Promise<RowFacts>((resolve, reject) => this.waiting.push({ row, resolve, reject }));
    facts.catch(() => this.kept.delete(row)); // so that it is asked for again
    this.sendSoon();
    return facts;
  }

  private async send(): Promise<void> {
    const batch = this.waiting;
    this.waiting = [];
    try {
      const { rows } = await this.app.ask("rows", { rows: batch.map(({ row }) => row) });
      batch.forEach(({ resolve }, index) => resolve(rows[index]!));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

const caches = new WeakMap<App, RowFactsCache>();

/** The facts that all parts of a page share. */
export function rowFacts(app: App): RowFactsCache {
  const found = caches.get(app) ?? new RowFactsCache(app);
  caches.set(app, found);
  return found;
}

/** A row in a few lines. The short card has room in a tooltip. */
export function factsCard(app: App, facts: RowFacts, short: boolean): HTMLElement {
  return element(
    "div", { class: short ? "facts short" : "facts" },
    element("strong", { class: "name" }, facts.name),
    labelsOf(facts, short ? LABELS_SHORT : Infinity),
    drawn(app, facts, short ? 72 : 196),
    !facts.pixels && !facts.values && features(app, facts, short),
  );
}

function drawn(app: App, facts: RowFacts, size: number): HTMLElement | null {
  if (facts.pixels) return drawRow(app, facts.pixels, "image", size);
  return facts.values ? drawRow(app, facts.values, "curve") : null;
}

function labelsOf(facts: RowFacts, most: number): HTMLElement | null {
  if (!facts.labels.length) return null;
  const pairs = facts.labels.slice(0, most).map(([name, value]) => pair(name, value));
  const more = facts.labels.length - pairs.length;
  return element("dl", { class: "pairs" }, ...pairs, more > 0 && pair("", `and ${more} more`));
}

function pair(name: string, value: string): HTMLElement {
  return element("div", {}, element("dt", { title: name }, name), element("dd", { title: value }, value));
}

function features(app: App, facts: RowFacts, short: boolean): HTMLElement | null {
  if (!facts.features.length) return null;
  const shown = facts.features.slice(0, short ? FEATURES_SHORT : FEATURES_LONG);
  const pairs = shown.map(([name, value]) => pair(name, plain(value)));
  const more = app.start.n_features - pairs.length; // facts have only some of many features
  const list = element("dl", { class: "pairs numbers" }, ...pairs);
  const rest = more > 0 && element("p", { class: "faint" }, `and ${more.toLocaleString("en-US")} more`);
  const title = more > 0 ? "Features least like the mean" : "Features";
  return element("div", {}, !short && element("h4", {}, title), list, rest);
}
