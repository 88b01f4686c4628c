// The frame that all parts of the side column share.
import { element } from "../dom.ts";

const FILLING = 300; // milliseconds after which a panel that was opened has its content

export interface Panel {
  readonly root: HTMLElement;
  readonly body: HTMLElement;
}

/** A part of the side column that can be folded. */
export function panel(title: string, id: string, open = true): Panel {
  const body = element("div", { class: "body" });
  const root = element("details", { class: "panel", id, open }, element("summary", {}, title), body);
  return { root, body };
}

/** Calls when something changes, but only while the panel is open, and again when it opens. */
export function whileOpen({ root }: Panel, run: () => void): () => void {
  const details = root as HTMLDetailsElement;
  details.addEventListener("toggle", () => details.open && run());
  return () => {
    if (details.open) run();
  };
}

/**
 * Opens a panel that has something new, and scrolls the column, not the page, until it is seen;
 * unless somebody works in the column.
 */
export function reveal({ root }: Panel): void {
  (root as HTMLDetailsElement).open = true;
  if (!root.parentElement?.contains(document.activeElement)) setTimeout(() => scrollTo(root), FILLING);
}

/** No further than is needed, and not beyond the top of the panel. */
function scrollTo(root: HTMLElement): void {
  const column = root.parentElement;
  if (!column) return;
  const around = column.getBoundingClientRect();
  const { top, bottom } = root.getBoundingClientRect();
  if (top < around.top) column.scrollTop += top - around.top;
  else column.scrollTop += Math.max(0, Math.min(bottom - around.bottom, top - around.top));
}
