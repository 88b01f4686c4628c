// What is known of the row that is pinned, or under the pointer.
import type { App } from "../app.ts";
import { NO_ROWS, onAny } from "../app.ts";
import { button } from "../dom.ts";
import type { RowFacts } from "../protocol.ts";
import { factsCard, rowFacts } from "./facts.ts";
import { buttons, failure, paragraph } from "./forms.ts";
import { panel, reveal, whileOpen } from "./panel.ts";

const NO_DATA = "These maps came without their data, so the features of a row are not known.";
const HOW = "Point at a row on a map to see it here. Click it to keep it here.";

export function rowPanel(app: App): HTMLElement {
  const made = panel("Row", "row");
  const refresh = whileOpen(made, () => void show(app, made.body));
  onAny([app.pinned, app.hovered, app.selection, app.labels], refresh);
  let pinned = app.pinned.value;
  app.pinned.onChange((row) => {
    if (row >= 0 && pinned < 0) reveal(made);
    pinned = row;
  });
  refresh();
  return made.root;
}

const currentRow = (app: App) => (app.pinned.value >= 0 ? app.pinned.value : app.hovered.value);

async function show(app: App, body: HTMLElement): Promise<void> {
  const row = currentRow(app);
  if (row < 0) {
    body.replaceChildren(paragraph(HOW, "faint"));
    return;
  }
  try {
    const facts = await rowFacts(app).get(row);
    if (row === currentRow(app)) fill(app, body, facts);
  } catch (error) {
    body.replaceChildren(failure(error));
  }
}

function fill(app: App, body: HTMLElement, facts: RowFacts): void {
  const pinned = app.pinned.value === facts.row;
  body.replaceChildren(
    factsCard(app, facts, false),
    app.start.has_data ? "" : paragraph(NO_DATA, "faint"),
    pinned ? pinButtons(app, facts.row) : paragraph("Click the row on a map to keep it here.", "faint"),
  );
}

function pinButtons(app: App, row: number): HTMLElement {
  const rows = app.selection.value;
  const selected = rows.includes(row);
  const toggle = () => app.select(selected ? rows.filter((each) => each !== row) : joined(rows, row));
  return buttons(
    button("Let go", () => app.pinned.set(-1)),
    button(selected ? "Remove from the selection" : "Add to the selection", toggle),
  );
}

function joined(rows: Uint32Array, row: number): Uint32Array {
  const all = new Uint32Array(rows.length + 1);
  all.set(rows);
  all[rows.length] = row;
  return rows === NO_ROWS ? all : all.sort();
}
