// Rows by their identifier or label.
import type { App } from "../app.ts";
import { NO_ROWS } from "../app.ts";
import { button, element } from "../dom.ts";
import { buttons, failure, paragraph } from "./forms.ts";
import { panel } from "./panel.ts";

export function searchPanel(app: App): HTMLElement {
  const { root, body } = panel("Find", "find");
  const reply = element("div", { role: "status" });
  let rows: Uint32Array = NO_ROWS;
  let at = 0;

  const input = element("input", {
    type: "search", placeholder: "row number, name or label", "aria-label": "Row number, name or label", onkeydown,
  });
  const previous = button("Previous", () => go(at - 1), { disabled: true });
  const next = button("Next", () => go(at + 1), { disabled: true });
  const where = element("span", { class: "faint" });

  function onkeydown(event: KeyboardEvent): void {
    if (event.key === "Enter" && input.value.trim()) void find();
    if (event.key === "Escape") clear();
  }

  async function find(): Promise<void> {
    try {
      const found = await app.ask("search", { text: input.value.trim() });
      reply.replaceChildren(paragraph(found.text));
      use(found.rows);
    } catch (error) {
      reply.replaceChildren(failure(error));
      use(NO_ROWS);
    }
  }

  function use(found: Uint32Array): void {
    rows = found;
    previous.disabled = next.disabled = rows.length < 2;
    if (rows.length) {
      app.select(rows);
      go(0);
    } else where.textContent = "";
  }

  function go(to: number): void {
    at = (to + rows.length) % rows.length;
    where.textContent = `${(at + 1).toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")}`;
    app.pinned.set(rows[at]!);
  }

  function clear(): void {
    if (app.selection.value === rows && rows.length) app.select(NO_ROWS); // another selection is kept
    input.value = "";
    reply.replaceChildren();
    use(NO_ROWS);
  }

  body.append(input, reply, buttons(previous, next, where, button("Clear", clear)));
  return root;
}
