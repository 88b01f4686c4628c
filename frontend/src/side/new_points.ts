// Places rows on the maps that were not there when these were fitted.
import type { App } from "../app.ts";
import { button, counted, element } from "../dom.ts";
import type { Placed } from "../protocol.ts";
import { dropZone } from "./drop_zone.ts";
import { buttons, failure, field, listOf, paragraph } from "./forms.ts";
import { panel } from "./panel.ts";
import { Upload } from "./upload.ts";

const UNLIKE = 2; // see Placed.novelty
const NAMES_LISTED = 12;

export function newPointsPanel(app: App): HTMLElement {
  const made = panel("New points", "new-points", false);
  const status = element("div", { role: "status" });
  const result = element("div");
  const take = (file: File) => {
    (made.root as HTMLDetailsElement).open = true;
    void placeFile(app, file, status);
  };
  app.placed.watch((placed) => result.replaceChildren(...(placed ? describe(app, placed) : [])));
  if (!app.start.maps.some((map) => map.can_place) && !app.start.has_data) {
    made.body.append(paragraph("None of these maps has a fitted model, so new rows cannot be placed on them.", "faint"));
    return made.root;
  }
  const how = "New rows are placed on all maps that can place them. They need the columns of the data.";
  made.body.append(paragraph(how, "faint"), fileButton(take), pasteBox(app, status), status, result);
  dropZone(made.root, app.start.hosted === "page", take);
  return made.root;
}

function fileButton(take: (file: File) => void): HTMLElement {
  const input = element("input", { type: "file", hidden: true, "aria-label": "File of new rows", onchange: () => {
    if (input.files?.[0]) take(input.files[0]);
    input.value = ""; // so that the same file can be chosen again
  } });
  return element("div", { class: "drop" }, "Drop a file here, or ", button("Choose a file", () => input.click()), input);
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
  status.replaceChildren(paragraph("Placing the rows"), element("progress", { "aria-label": "Placing the rows" }));
  try {
    app.placed.set(await app.ask("place", rows));
    status.replaceChildren();
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
    novelty(placed),
    ...placed.notes.map((note) => paragraph(note, "faint")),
    ...(skipped.length ? [element("h4", {}, "Maps without them"), listOf(skipped)] : []),
    element("h4", {}, "Their names"),
    paragraph(namesOf(placed, count), "names"),
    buttons(button("Remove them", () => app.placed.set(null))),
  ];
}

function namesOf({ names }: Placed, count: number): string {
  const more = count - Math.min(count, NAMES_LISTED);
  const first = names.slice(0, NAMES_LISTED).join(", ");
  return more ? `${first} and ${more.toLocaleString("en-US")} more` : first;
}

function novelty({ novelty }: Placed): HTMLElement {
  if (!novelty) return paragraph("These maps do not know how much new rows are like the data they were fitted to.", "faint");
  const unlike = novelty.reduce((count, each) => count + (each > UNLIKE ? 1 : 0), 0);
  const count = novelty.length;
  if (!unlike) return paragraph(count === 1 ? "It is like the data that the maps were fitted to." : "All are like the data that the maps were fitted to.");
  const which = unlike === count ? (unlike === 1 ? "It is" : "All are") : `${unlike.toLocaleString("en-US")} of them ${unlike === 1 ? "is" : "are"}`;
  return paragraph(`${which} unlike the data that the maps were fitted to, so do not rely on the positions.`, "caution");
}
