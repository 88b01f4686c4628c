// Which points are drawn, and in which order.

/** Rows in the order in which they are drawn; those before `faded` are drawn pale. */
export interface Order {
  rows: Uint32Array;
  faded: number;
}

/** Which rows are not hidden by the legend. */
export type Visible = (row: number) => boolean;

/** A fixed random order, so that in data sorted by class the last class does not cover the others. */
export function shuffled(n: number): Uint32Array {
  const rows = new Uint32Array(n);
  for (let i = 0; i < n; i++) rows[i] = i;
  let state = 20260710;
  for (let i = n - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    const row = rows[i]!;
    rows[i] = rows[j]!;
    rows[j] = row;
  }
  return rows;
}

/** Hidden classes are left out, and selected rows come last. */
export function orderOf(all: Uint32Array, visible: Visible | null, selection: Uint32Array): Order {
  if (!selection.length) return { rows: visible ? all.filter(visible) : all, faded: 0 };
  const selected = mask(all.length, selection);
  const others = all.filter((row) => !selected[row] && (!visible || visible(row)));
  const chosen = all.filter((row) => selected[row] && (!visible || visible(row)));
  const rows = new Uint32Array(others.length + chosen.length);
  rows.set(others);
  rows.set(chosen, others.length);
  return { rows, faded: others.length };
}

/** 1 for the given rows of n. */
export function mask(n: number, rows: Uint32Array): Uint8Array {
  const marked = new Uint8Array(n);
  for (let i = 0; i < rows.length; i++) marked[rows[i]!] = 1;
  return marked;
}

export type Combine = "replace" | "add" | "remove";

/** A selection after more rows were selected, in ascending order. */
export function combined(n: number, selection: Uint32Array, rows: Uint32Array, how: Combine): Uint32Array {
  const marked = how === "replace" ? new Uint8Array(n) : mask(n, selection);
  for (let i = 0; i < rows.length; i++) marked[rows[i]!] = how === "remove" ? 0 : 1;
  let count = 0;
  for (let i = 0; i < n; i++) count += marked[i]!;
  const result = new Uint32Array(count);
  for (let i = 0, at = 0; i < n; i++) if (marked[i]) result[at++] = i;
  return result;
}
