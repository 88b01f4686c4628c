// Starts the work that gives evidence of a map, and says how it went.
import type { App } from "../app.ts";
import { failure, paragraph } from "./forms.ts";

/** Asks for evidence, or for a refit to see which points move; the reply is shown in `status`. */
export async function computeEvidence(app: App, map: string, stability: boolean, status: HTMLElement): Promise<void> {
  try {
    const started = stability ? await app.ask("stability", { map }) : await evidenceOf(app, map);
    status.replaceChildren(started ? paragraph(`Started: ${started.what}. “Maps and work” shows how far it is.`, "faint") : "");
  } catch (error) {
    status.replaceChildren(failure(error));
  }
}

/** Evidence that is ready is kept for all panels; otherwise the job that computes it is returned. */
export async function evidenceOf(app: App, map: string) {
  const { evidence, job } = await app.ask("evidence", { map });
  if (evidence) app.evidence.set(new Map(app.evidence.value).set(map, evidence));
  return job;
}
