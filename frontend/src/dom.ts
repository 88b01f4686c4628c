// Elements of the page. Text is always set as text, never parsed as HTML.

type Child = Node | string | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
// A style attribute is refused by the content security policy; scripts set element.style instead.
type Attributes = Handlers & { class?: string; style?: never; [name: string]: unknown };

function isShown(child: Child): child is Node | string {
  return child !== null && child !== undefined && child !== false;
}

/** An element: attributes, functions named "on…" as listeners, and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value as EventListener);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter(isShown));
  return made;
}

/** An element of a drawing. */
export function shape(tag: string, attributes: Record<string, string | number> = {}, ...children: Child[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children.filter(isShown));
  return made;
}

/** A button; `icon` is a character that is hidden from screen readers. */
export function button(text: string, onclick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return element("button", { type: "button", ...attributes, onclick }, text);
}

let named = 0;

/** An identifier that no other element has, also of other widgets on the page. */
export function unique(prefix: string): string {
  return `${prefix}-${++named}-${Math.random().toString(36).slice(2)}`; // crypto.randomUUID needs https
}

/** A number with at most four digits that matter. */
export function plain(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** A distance from a map, of which not more is known than two digits. */
export function twoDigits(value: number): string {
  if (!Number.isFinite(value)) return plain(value);
  return value < 9.95 ? value.toFixed(1) : Math.round(value).toLocaleString("en-US");
}

export function counted(n: number, noun: string): string {
  return `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;
}

/** Lets a function run at most once per frame. */
export function perFrame(run: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      run();
    });
  };
}

/** Lets only the last of several quick calls run, after a pause. */
export function afterPause<A extends unknown[]>(run: (...args: A) => void, pause: number): (...args: A) => void {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => run(...args), pause);
  };
}
