// Takes files that are dropped anywhere on the explorer.

/** On a page of our own, files can be dropped anywhere; in a notebook, only on the explorer. */
export function dropZone(inside: HTMLElement, wholePage: boolean, take: (file: File) => void): void {
  if (wholePage) listen(document, () => rootOf(inside), take);
  else whenAttached(inside, () => listen(rootOf(inside), () => rootOf(inside), take));
}

const rootOf = (inside: HTMLElement): HTMLElement => inside.closest<HTMLElement>(".manifoldry") ?? inside;

/** Panels are made before they are put on the page. */
function whenAttached(inside: HTMLElement, run: () => void): void {
  if (inside.isConnected) run();
  else requestAnimationFrame(() => whenAttached(inside, run));
}

function listen(target: Document | HTMLElement, root: () => HTMLElement, take: (file: File) => void): void {
  const highlight = (on: boolean) => root().classList.toggle("dropping", on);
  const on = (name: string, run: (event: DragEvent) => void) => target.addEventListener(name, (event) => {
    if (hasFiles(event as DragEvent)) run(event as DragEvent);
  });
  on("dragover", (event) => {
    event.preventDefault(); // allows the drop
    highlight(true);
  });
  on("dragleave", (event) => {
    if (!root().contains(event.relatedTarget as Node | null)) highlight(false);
  });
  on("drop", (event) => {
    event.preventDefault(); // else the browser opens the file
    highlight(false);
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}
