// How much a map can be trusted: the verdict, metrics and charts.
import type { App } from "../app.ts";
import { button, counted, element, plain } from "../dom.ts";
import type { Evidence, MapInfo } from "../protocol.ts";
import { corankingChart, redundancyChart, shepardChart, spectrumChart } from "./charts.ts";
import { computeEvidence } from "./compute.ts";
import { buttons, failure, paragraph } from "./forms.ts";
import { badge } from "./inverted.ts";
import { isActive } from "./jobs.ts";
import { panel, whileOpen } from "./panel.ts";
import { metricsTable, qualityTable } from "./quality.ts";

const WHAT = "Evidence compares the map with its data: which neighbors it keeps, and which distances.";
const NO_DATA = "Evidence compares a map with its data, but these maps came without data.";
const UNDER_WAY = "Being computed. “Maps and work” shows how far it is.";

export function evidencePanel(app: App): HTMLElement {
  const made = panel("Evidence", "evidence", false);
  const status = element("div", { role: "status" });
  const verdict = element("div");
  const compared = element("div");
  const failed: Failed = new Map();
  const refresh = whileOpen(made, () => {
    load(app, failed, refresh);
    verdict.replaceChildren(...describe(app, failed, refresh, status));
    compared.replaceChildren(...compare(app));
  });
  const changed = () => {
    status.replaceChildren();
    refresh();
  };
  app.active.onChange(changed);
  app.evidence.onChange(changed);
  app.maps.onChange(refresh);
  app.shown.onChange(refresh);
  let underWay = "";
  app.jobs.watch((jobs) => {
    const before = underWay;
    underWay = JSON.stringify(jobs.map(({ id, state }) => [id, state])); // progress is shown elsewhere
    if (before && underWay !== before) refresh();
  });
  made.body.append(verdict, status, compared);
  refresh();
  return made.root;
}

/** Maps whose evidence was asked for in vain. */
type Failed = Map<string, Error>;

/** Asks for evidence that Python has and this page does not, as after the page was opened again. */
function load(app: App, failed: Failed, refresh: () => void): void {
  for (const { id, evidence } of app.maps.value) {
    const wanted = evidence === "ready" && (app.shown.value.includes(id) || id === app.active.value);
    if (!wanted || app.evidence.value.has(id) || failed.has(id)) continue;
    app.askEvidence(id).catch((error: Error) => {
      failed.set(id, error);
      refresh();
    });
  }
}

function describe(app: App, failed: Failed, refresh: () => void, status: HTMLElement): HTMLElement[] {
  const map = app.map(app.active.value);
  if (!map) return [paragraph("There is no map.", "faint")];
  const head = element("h4", {}, map.name);
  const evidence = app.evidence.value.get(map.id);
  if (evidence) return [head, ...explained(app, map, evidence, status)];
  if (!app.start.has_data) return [head, paragraph(NO_DATA, "faint")];
  if (map.evidence === "ready") return [head, ...loading(map, failed, refresh)];
  if (isUnderWay(app, map.id, "evidence")) return [head, paragraph(UNDER_WAY, "faint")];
  const compute = button("Compute", () => void computeEvidence(app, map.id, false, status), {
    "aria-label": `Compute evidence of ${map.name}`,
  });
  return [head, paragraph(WHAT, "faint"), buttons(compute)];
}

function loading(map: MapInfo, failed: Failed, refresh: () => void): HTMLElement[] {
  const error = failed.get(map.id);
  if (!error) return [paragraph("Loading", "faint")];
  const again = button("Try again", () => {
    failed.delete(map.id);
    refresh();
  });
  return [failure(error), buttons(again)];
}

function isUnderWay(app: App, map: string, kind: "evidence" | "stability"): boolean {
  return app.jobs.value.some((job) => job.kind === kind && job.map === map && isActive(job));
}

function explained(app: App, map: MapInfo, evidence: Evidence, status: HTMLElement): HTMLElement[] {
  const sentences = evidence.sentences.map((text) => paragraph(text));
  return [
    element("div", { class: "verdict" }, badge(evidence.grade, evidence.grade), ...sentences),
    metricsTable(evidence.metrics),
    ...(evidence.sampled ? [paragraph(evidence.sampled, "faint")] : []),
    ...charts(evidence),
    stability(app, map, evidence, status),
  ];
}

function charts({ spectrum, redundancy, redundant_below, shepard, coranking }: Evidence): HTMLElement[] {
  const made: HTMLElement[] = [];
  if (coranking && coranking.sizes.length > 1) made.push(corankingChart(coranking));
  if (shepard) made.push(shepardChart(shepard));
  if (spectrum && spectrum.values.length) made.push(spectrumChart(spectrum));
  if (redundancy.length > 1) made.push(redundancyChart(redundancy, redundant_below));
  return made;
}

function stability(app: App, map: MapInfo, { stability: known }: Evidence, status: HTMLElement): HTMLElement {
  const head = element("h4", {}, "Stability");
  if (known) {
    const text = `${known.verdict} (variability ${plain(known.variability)} over ${counted(known.n_refits, "refit")})`;
    return element("div", {}, head, paragraph(text));
  }
  if (isUnderWay(app, map.id, "stability")) {
    return element("div", {}, head, paragraph("The refits are under way.", "faint"));
  }
  const how = paragraph("Refits to parts of the rows show which points move.", "faint");
  const refit = button("Refit 5 times", () => void computeEvidence(app, map.id, true, status));
  return element("div", {}, head, how, buttons(refit));
}

/** The maps on the screen side by side. */
function compare(app: App): HTMLElement[] {
  const columns = app.shown.value.flatMap((id) => {
    const evidence = app.evidence.value.get(id);
    const name = app.map(id)?.name;
    return evidence && name !== undefined ? [{ name, evidence }] : [];
  });
  if (columns.length < 2) return [];
  return [element("h4", {}, "The maps side by side"), qualityTable(columns)];
}
