// The column of panels beside the maps. Its width can be dragged, and it can be put away.
import { button, element } from "./dom.ts";

const LEAST = 260, MOST = 620, USUAL = 340;
const STEP = 20; // of a key

export function sideColumn(panels: HTMLElement[], around: number): { column: HTMLElement; separator: HTMLElement; toggle: HTMLElement } {
  const column = element("aside", { class: "side", "aria-label": "Panels" }, ...panels);
  const separator = element("div", {
    class: "separator", role: "separator", tabindex: 0, "aria-orientation": "vertical", "aria-label": "Width of the panels",
    "aria-valuemin": LEAST, "aria-valuemax": MOST, title: "Drag to change the width",
  });
  const resize = (width: number) => {
    const fitting = Math.round(Math.min(MOST, Math.max(LEAST, width)));
    column.style.width = `${fitting}px`;
    separator.setAttribute("aria-valuenow", String(fitting));
  };
  resize(Math.min(USUAL, 0.3 * around));
  listen(column, separator, resize);
  const toggle = button("Panels", () => {
    column.hidden = separator.hidden = !column.hidden;
    toggle.setAttribute("aria-pressed", String(!column.hidden));
  }, { class: "toggle", "aria-pressed": "true", title: "Show or hide the panels on the right" });
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
