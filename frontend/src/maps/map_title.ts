// The line above a map: its name, how well it can be trusted, its coordinates, and how to close it.
import type { App } from "../app.ts";
import { button, element } from "../dom.ts";
import type { MapInfo } from "../protocol.ts";

export class MapTitle {
  readonly root: HTMLElement;
  private readonly name = element("h2", {});
  private readonly grade = element("span", { class: "grade" });
  private readonly coordinates = element("span", { class: "coordinates" });
  private readonly ends: (() => void)[];

  constructor(private readonly app: App, private info: MapInfo, isMap: boolean) {
    const hide = `Hide ${info.name}`;
    const close = button("×", () => this.hide(), { class: "close", title: hide, "aria-label": hide });
    const about = element("div", { class: "about" }, this.name, this.grade, this.coordinates);
    this.root = element("header", { class: "title" }, about, isMap && close);
    // Of a map that was judged before the page was opened.
    if (info.evidence === "ready" && !app.evidence.value.has(info.id)) app.askEvidence(info.id).catch(() => {});
    this.ends = [
      app.evidence.watch(() => this.showGrade()),
      app.active.watch((active) => this.name.classList.toggle("active", isMap && active === info.id)),
    ];
  }

  update(info: MapInfo): void {
    const before = this.info;
    this.info = info;
    this.name.textContent = this.name.title = info.name;
    if (String(before.shown) !== String(info.shown) || !this.coordinates.firstChild) this.showCoordinates();
  }

  private showGrade(): void {
    const found = this.app.evidence.value.get(this.info.id);
    this.grade.hidden = !found;
    if (!found) return;
    this.grade.textContent = `evidence: ${found.grade}`;
    this.grade.dataset.grade = found.grade;
    this.grade.title = found.sentences.join(" ");
  }

  /** Two lists, if the map has more than two coordinates. */
  private showCoordinates(): void {
    const { info } = this;
    if (info.n_components < 3) return;
    const lists = ([0, 1] as const).map((axis) => {
      const options = Array.from({ length: info.n_components }, (_, k) =>
        element("option", { value: k, selected: info.shown[axis] === k }, String(k + 1)));
      const label = axis === 0 ? "Coordinate to the right" : "Coordinate upwards";
      return element("select", { "aria-label": label, title: label, onchange: () => void this.choose() }, ...options);
    });
    this.coordinates.replaceChildren(element("span", {}, "coordinates "), lists[0]!, " ", lists[1]!);
  }

  private async choose(): Promise<void> {
    const lists = [...this.coordinates.querySelectorAll("select")];
    const shown = lists.map((list) => Number(list.value)) as [number, number];
    try {
      const info = await this.app.ask("coordinates", { map: this.info.id, shown });
      this.app.maps.set(this.app.maps.value.map((each) => (each.id === info.id ? info : each)));
    } catch {
      this.showCoordinates(); // the page says what went wrong
    }
  }

  private hide(): void {
    this.app.shown.set(this.app.shown.value.filter((id) => id !== this.info.id));
  }

  close(): void {
    for (const each of this.ends) each();
  }
}
