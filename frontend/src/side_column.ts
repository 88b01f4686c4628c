// The column of panels beside the maps. Its width can be dragged, and it can be put away.
import { element } from "./dom.ts";
import { iconButton } from "./toolbar.ts";

const LEAST = 260, MOST = 620, USUAL = 340;
const STEP = 20; // of a key

export interface SideColumn {
  column: HTMLElement;
  separator: HTMLElement;
  toggle: HTMLElement;
}

export function sideColumn(panels: HTMLElement[], around: number): SideColumn {
  const column = element("aside", { class: "side", "aria-label": "Panels" }, ...panels);
  const separator = element("div", {
    class: "separator", role: "separator", tabindex: 0, title: "Drag to change the width",
    "aria-orientation": "vertical", "aria-label": "Width of the panels", "aria-valuemin": LEAST, "aria-valuemax": MOST,
  });
  const resize = (width: number) => {
    const fitting = Math.round(Math.min(MOST, Math.max(LEAST, width)));
    column.style.width = `${fitting}px`;
    separator.setAttribute("aria-valuenow", String(fitting));
  };
  resize(Math.min(USUAL, 0.3 * around));
  listen(column, separator, resize);
  const toggle = iconButton("Panels", "panels", () => {
    column.hidden = separator.hidden = !column.hidden;
    toggle.setAttribute("aria-pressed", String(!column.hidden));
  }, { class: "toggle", title: "Show or hide the panels on the right" });
  toggle.setAttribute("aria-pressed", "true");
  return { column, separator, toggle };
}

function listen(column: HTMLElement, separator: HTMLElement, resize: (width: number) => void): void {
  separator.addEventListener("pointerdown", (event) => separator.setPointerCapture(event.pointerId));
  separator.addEventListener("pointermove", (event) => {
    if (separator.hasPointerCapture(event.pointerId)) resize(column.getBoundingClientRect().right - event.clientX);
  });
  separator.addEventListener("keydown", (event) => {
    const sign = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
    if (!sign) return;
    event.preventDefault();
    resize(column.offsetWidth + sign * STEP);
  });
}
