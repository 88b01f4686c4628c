// Places rows on the maps that were not there when these were fitted.
import { onAny } from "../app.ts";
import type { App } from "../app.ts";
import { button, counted, element } from "../dom.ts";
import type { Placed } from "../protocol.ts";
import { dropZone } from "./drop_zone.ts";
import { buttons, failure, field, listOf, paragraph } from "./forms.ts";
import { legendOfDiamonds, listOfNewRows, noveltyText } from "./new_rows.ts";
import { panel, reveal } from "./panel.ts";
import { Upload } from "./upload.ts";

const NOWHERE = "None of these maps has a fitted model, so new rows cannot be placed on them.";

export function newPointsPanel(app: App): HTMLElement {
  const made = panel("New points", "new-points", false);
  const status = element("div", { role: "status" });
  const result = element("div");
  const wholePage = app.start.hosted === "page";
  if (!app.start.maps.some((map) => map.can_place) && !app.start.has_data) {
    made.body.append(paragraph(NOWHERE, "faint"));
    dropZone(made.root, wholePage, () => {
      reveal(made);
      app.said.set(NOWHERE);
    });
    return made.root;
  }
  const take = (file: File) => {
    reveal(made); // also if the file was dropped on a map
    void placeFile(app, file, status).then(() => reveal(made));
  };
  const refresh = () => {
    const placed = app.placed.value;
    result.replaceChildren(...(placed ? describe(app, placed) : []));
  };
  onAny([app.placed, app.dark], refresh);
  const how = "New rows are placed on all maps that can place them. They need the columns of the data.";
  made.body.append(paragraph(how, "faint"), fileButton(take), pasteBox(app, status), status, result);
  dropZone(made.root, wholePage, take);
  return made.root;
}

function fileButton(take: (file: File) => void): HTMLElement {
  const input = element("input", { type: "file", hidden: true, "aria-label": "File of new rows", onchange: () => {
    if (input.files?.[0]) take(input.files[0]);
    input.value = ""; // so that the same file can be chosen again
  } });
  const choose = button("Choose a file", () => input.click());
  return element("div", { class: "drop" }, "Drop a file here, or ", choose, input);
}

function pasteBox(app: App, status: HTMLElement): HTMLElement {
  const box = element("textarea", { rows: 3, spellcheck: "false", placeholder: "5.1, 3.5, 1.4, 0.2" });
  const place = button("Place these rows", () => {
    if (box.value.trim()) void placeAndShow(app, { text: box.value }, status);
  });
  return element("div", {}, field("Or paste rows, one per line", box), buttons(place));
}

async function placeFile(app: App, file: File, status: HTMLElement): Promise<void> {
  const upload = new Upload(app, file);
  const bar = element("progress", { max: 1, value: 0, "aria-label": `Upload of ${file.name}` });
  const cancel = button("Cancel", () => upload.cancel());
  status.replaceChildren(paragraph(`Uploading ${file.name}`), bar, buttons(cancel));
  try {
    const id = await upload.run((fraction) => (bar.value = fraction));
    if (id === null) status.replaceChildren(paragraph("The upload was canceled.", "faint"));
    else await placeAndShow(app, { upload: id }, status);
  } catch (error) {
    status.replaceChildren(failure(error));
  }
}

async function placeAndShow(app: App, rows: { upload: string } | { text: string }, status: HTMLElement): Promise<void> {
  app.placed.set(null); // what is said below is about these rows
  status.replaceChildren(paragraph("Placing the rows"), element("progress", { "aria-label": "Placing the rows" }));
  try {
    app.placed.set(await app.ask("place", rows));
    status.replaceChildren();
    app.said.set("The rows are placed");
  } catch (error) {
    status.replaceChildren(failure(error));
  }
}

function describe(app: App, placed: Placed): HTMLElement[] {
  const maps = Object.values(placed.xy);
  const count = (maps[0]?.length ?? 0) / 2; // names are only those of the first rows
  const skipped = Object.entries(placed.skipped).map(([id, why]) => `${app.map(id)?.name ?? id}: ${why}`);
  return [
    paragraph(`${counted(count, "row")} placed on ${counted(maps.length, "map")}.`),
    noveltyText(placed),
    legendOfDiamonds(placed, app.dark.value),
    ...placed.notes.map((note) => paragraph(note, "faint")),
    ...(skipped.length ? [element("h4", {}, "Maps without them"), listOf(skipped)] : []),
    element("h4", {}, "Their names"),
    ...listOfNewRows(app, placed, count),
    buttons(button("Remove them", () => app.placed.set(null))),
  ];
}
