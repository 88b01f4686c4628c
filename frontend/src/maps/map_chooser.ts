// The list of all maps, with a check mark at those that are shown.
import { onAny } from "../app.ts";
import type { App } from "../app.ts";
import { element } from "../dom.ts";
import { MOST_SHOWN } from "./map_grid.ts";

export interface Part {
  readonly root: HTMLElement;
  readonly close: () => void;
}

export function mapChooser(app: App): Part {
  const title = element("summary", {});
  const list = element("ul", { class: "choices" });
  const onkeydown = (event: KeyboardEvent) => event.key === "Escape" && shut();
  const root = element("details", { class: "menu", onkeydown }, title, list);
  const shut = () => {
    root.open = false;
    title.focus();
  };
  const fill = () => {
    title.textContent = `Maps (${app.shown.value.length} of ${app.maps.value.length} shown)`;
    const focused = list.querySelector<HTMLInputElement>("input:focus")?.value;
    list.replaceChildren(...app.maps.value.map((map) => choice(app, map.id, map.name)));
    [...list.querySelectorAll("input")].find((box) => box.value === focused)?.focus();
  };
  const onPress = (event: PointerEvent) => {
    if (!event.composedPath().includes(root)) root.open = false; // target is not enough in a shadow root
  };
  fill();
  document.addEventListener("pointerdown", onPress);
  const end = onAny([app.shown, app.maps], fill);
  const close = () => {
    end();
    document.removeEventListener("pointerdown", onPress);
  };
  return { root, close };
}

function choice(app: App, id: string, name: string): HTMLElement {
  const shown = app.shown.value.includes(id);
  const full = !shown && app.shown.value.length >= MOST_SHOWN;
  const onchange = () => toggle(app, id);
  const box = element("input", { type: "checkbox", value: id, checked: shown, disabled: full, onchange });
  const title = full ? `At most ${MOST_SHOWN} maps are shown at once. Hide one first.` : undefined;
  return element("li", { title }, element("label", {}, box, ` ${name}`));
}

/** In the order of the list, whichever was chosen last. */
function toggle(app: App, id: string): void {
  const shown = new Set(app.shown.value);
  if (!shown.delete(id)) shown.add(id);
  app.shown.set(app.maps.value.map((map) => map.id).filter((each) => shown.has(each)));
}
