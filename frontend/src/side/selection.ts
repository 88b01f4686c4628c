// What is selected, what distinguishes it, and what can be done with it.
import type { App } from "../app.ts";
import { NO_ROWS, onAny } from "../app.ts";
import { afterPause, button, counted, element } from "../dom.ts";
import { differences } from "./differences.ts";
import { buttons, failure, field, paragraph, saveFile, suggestingInput } from "./forms.ts";
import { panel, reveal, whileOpen } from "./panel.ts";
import { newest } from "./requests.ts";

const PAUSE = 250; // milliseconds without a change, after which the selection is described
const IN_PYTHON = "In Python, these rows are explorer.selection.";
const ALL_ROWS = "These are all rows, so nothing distinguishes them.";
const HOW = "Choose the lasso (L) and draw around points, or press Space at a pinned row.";

export function selectionPanel(app: App): HTMLElement {
  const made = panel("Selection", "selection", app.selection.value.length > 0);
  const how = paragraph(HOW, "faint");
  const count = element("p", { class: "count", role: "status" });
  const found = element("div");
  const tools = element("div", {}, actions(app), found, labelForm(app));
  if (app.start.hosted === "notebook") tools.append(paragraph(IN_PYTHON, "faint"));

  const describe = describer(app, found);
  const refresh = whileOpen(made, () => {
    const rows = app.selection.value;
    how.hidden = rows.length > 0;
    tools.hidden = rows.length === 0;
    const selected = `${counted(rows.length, "row")} of ${app.start.n.toLocaleString("en-US")} selected`;
    count.textContent = rows.length ? selected : "Nothing is selected.";
    describe(rows);
  });
  onAny([app.selection, app.labels], refresh);
  let some = app.selection.value.length > 0;
  app.selection.onChange((rows) => {
    const before = some;
    some = rows.length > 0;
    if (some && !before) reveal(made);
  });
  made.body.append(count, how, tools);
  refresh();
  return made.root;
}

/** Asks what distinguishes the rows, when the selection rests. */
function describer(app: App, found: HTMLElement): (rows: Uint32Array) => void {
  const follower = newest(
    (rows: Uint32Array) => app.ask("distinguish", { rows }),
    (reply) => found.replaceChildren(...differences(reply)),
    (error) => found.replaceChildren(failure(error)),
  );
  const soon = afterPause((rows: Uint32Array) => follower.follow(rows), PAUSE);
  return (rows) => {
    follower.drop(); // what is shown is of another selection
    if (rows.length && rows.length < app.start.n) soon(rows);
    else {
      soon(NO_ROWS);
      found.replaceChildren(rows.length ? paragraph(ALL_ROWS, "faint") : "");
    }
  };
}

function actions(app: App): HTMLElement {
  const status = element("div", { role: "status" });
  const save = () => void download(app).then(
    (note) => status.replaceChildren(note ? paragraph(note, "faint") : ""),
    (error) => status.replaceChildren(failure(error)),
  );
  const invert = () => app.select(others(app.selection.value, app.start.n));
  return element(
    "div", {},
    buttons(
      button("Invert", invert, { "aria-label": "Invert the selection" }),
      button("Clear", () => app.select(NO_ROWS), { "aria-label": "Clear the selection" }),
      button("Export", save, { "aria-label": "Export the selected rows to a file" }),
    ),
    status,
  );
}

function others(rows: Uint32Array, n: number): Uint32Array {
  const inside = new Uint8Array(n);
  for (const row of rows) inside[row] = 1;
  return Uint32Array.from(inside.keys()).filter((row) => !inside[row]);
}

/** Saves the rows as a file; returns what was left out of it. */
async function download(app: App): Promise<string> {
  const { name, text, note } = await app.ask("export", { rows: app.selection.value });
  saveFile(name, text);
  return note;
}

function labelForm(app: App): HTMLElement {
  const own = () => app.labels.value.filter((each) => each.own).map((each) => each.name);
  const column = suggestingInput("Column", own);
  const value = element("input", { type: "text", autocomplete: "off" });
  const status = element("div", { role: "status" });
  const submit = async (event: Event) => {
    event.preventDefault();
    status.replaceChildren(await saved(app, column.input.value.trim(), value.value.trim()));
  };
  return element(
    "form", { class: "label-form", onsubmit: (event) => void submit(event) },
    element("h4", {}, "Label these rows"),
    element("div", { class: "two" }, column.root, field("Value", value)),
    buttons(element("button", { type: "submit" }, "Label")),
    paragraph("Without a value, the rows lose their label.", "faint"), status,
  );
}

async function saved(app: App, column: string, value: string): Promise<HTMLElement> {
  if (!column) return paragraph("Type the name of the column that gets the label, such as “group”.", "failure");
  const rows = app.selection.value;
  try {
    const reply = await app.ask("label", { rows, column, value });
    const done = value ? `labeled ${value} in “${reply.name}”` : `without a label in “${reply.name}”`;
    const where = reply.saved ? `Saved in ${reply.saved}.` : "Labels are kept until the explorer ends.";
    return paragraph(`${counted(rows.length, "row")} ${done}. ${where}`);
  } catch (error) {
    return failure(error);
  }
}
