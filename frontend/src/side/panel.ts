// The frame that all parts of the side column share.
import { element } from "../dom.ts";

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

/** Opens a panel that has something new, and scrolls the column, not the page, until it is seen. */
export function reveal({ root }: Panel): void {
  (root as HTMLDetailsElement).open = true;
  const column = root.parentElement;
  if (!column) return;
  const below = root.getBoundingClientRect().top - column.getBoundingClientRect().top;
  const seen = below >= 0 && below < column.clientHeight / 2;
  if (!seen) column.scrollTop += below;
}
