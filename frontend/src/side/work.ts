// The maps, the work that is under way, and a form for one more map.
import type { App } from "../app.ts";
import { button, element } from "../dom.ts";
import type { MapInfo } from "../protocol.ts";
import { addMapForm } from "./add_map.ts";
import { confirmedButton, failure, paragraph, saveFile } from "./forms.ts";
import { jobList } from "./jobs.ts";
import { panel } from "./panel.ts";

const NO_DATA = "Start the explorer with the data to add maps of other methods.";

export function workPanel(app: App): HTMLElement {
  const made = panel("Maps and work", "work", false);
  const add = app.start.has_data ? addMapForm(app) : paragraph(NO_DATA, "faint");
  made.body.append(mapList(app), jobList(app), add);
  return made.root;
}

function mapList(app: App): HTMLElement {
  const list = element("ul", { class: "map-list", "aria-label": "Maps" });
  const status = element("div", { role: "status" });
  app.maps.watch((maps) => {
    const entries = maps.map((map) =>
      element(
        "li", {}, element("span", { class: "map-name", title: map.name }, map.name),
        map.can_save && saveButton(app, map, status), removeButton(app, map, status),
      ),
    );
    list.replaceChildren(...entries);
    if (!maps.length) list.append(element("li", {}, paragraph("There is no map.", "faint")));
  });
  return element("div", {}, list, status);
}

/** A model file places new rows, and opens the map again. */
function saveButton(app: App, map: MapInfo, status: HTMLElement): HTMLElement {
  const save = async () => {
    const { name, bytes } = await app.ask("keep", { map: map.id });
    saveFile(name, bytes);
    status.replaceChildren(paragraph(`${name} opens this map again: manifoldry explore ${name}`, "faint"));
  };
  const onclick = () => void save().catch((error) => status.replaceChildren(failure(error)));
  return button("Save", onclick, {
    "aria-label": `Save the model of ${map.name} to a file`,
    title: "A model file, for manifoldry explore and transform",
  });
}

function removeButton(app: App, map: MapInfo, status: HTMLElement): HTMLElement {
  const remove = () => void app.ask("remove", { map: map.id }).then(
    () => status.replaceChildren(),
    (error) => status.replaceChildren(failure(error)),
  );
  return confirmedButton("Remove", "Remove for good?", remove, `Remove the map ${map.name}`);
}
