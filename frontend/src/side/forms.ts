// Parts of forms that several panels use.
import { button, element, unique } from "../dom.ts";

const SUGGESTIONS = 50;

/** A form control with its label. */
export function field(label: string, control: HTMLElement, kind = ""): HTMLLabelElement {
  return element("label", { class: `field ${kind}` }, element("span", {}, label), control);
}

export interface SuggestingInput {
  root: HTMLElement;
  input: HTMLInputElement;
}

/** A text box that suggests the names which contain what is typed; only a few, as there may be thousands. */
export function suggestingInput(label: string, names: () => string[], kind = ""): SuggestingInput {
  const list = element("datalist", { id: unique("names") });
  const input = element("input", { type: "text", list: list.id, autocomplete: "off", spellcheck: "false" });
  const suggest = () => {
    const found = matching(names(), input.value);
    list.replaceChildren(...found.map((value) => element("option", { value })));
  };
  input.addEventListener("input", suggest);
  input.addEventListener("focus", suggest);
  return { root: element("div", { class: "field-with-list" }, field(label, input, kind), list), input };
}

/** The first names that contain a text, whatever its case. */
export function matching(names: string[], text: string, most = SUGGESTIONS): string[] {
  const wanted = text.trim().toLowerCase();
  const found: string[] = [];
  for (const name of names) {
    if (found.length === most) break;
    if (name.toLowerCase().includes(wanted)) found.push(name);
  }
  return found;
}

/** A button that does something which cannot be undone, so it asks once more. */
export function confirmedButton(text: string, question: string, run: () => void, label: string): HTMLButtonElement {
  let asked = false;
  const made = button(text, () => {
    if (asked) run();
    show(!asked);
  }, { "aria-label": label });
  const show = (next: boolean) => {
    asked = next;
    made.textContent = asked ? question : text;
    made.setAttribute("aria-label", asked ? `${label}: ${question}` : label);
    made.classList.toggle("asked", asked);
  };
  made.addEventListener("blur", () => show(false));
  return made;
}

/** A row of buttons. */
export function buttons(...children: (Node | null)[]): HTMLElement {
  return element("div", { class: "buttons" }, ...children);
}

export function paragraph(text: string, kind = ""): HTMLElement {
  return element("p", { class: kind }, text);
}

/** An error where it belongs; screen readers read it at once. */
export function failure(error: unknown): HTMLElement {
  return element("p", { class: "failure", role: "alert" }, (error as Error).message);
}

function capped(texts: string[], most: number): string[] {
  const more = texts.length - most;
  return more > 0 ? [...texts.slice(0, most), `and ${more.toLocaleString("en-US")} more`] : texts;
}

export function listOf(texts: string[], most = 12): HTMLUListElement {
  return element("ul", {}, ...capped(texts, most).map((text) => element("li", {}, text)));
}

/** Lets the browser save bytes as a file. */
export function saveFile(name: string, bytes: Uint8Array): void {
  const address = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>]));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the download has begun by then
}
