// Starts the work that gives evidence of a map, and says how it went.
import type { App } from "../app.ts";
import { failure, paragraph } from "./forms.ts";

/** Asks for evidence, or for a refit to see which points move; the reply is shown in `status`. */
export async function computeEvidence(app: App, map: string, stability: boolean, status: HTMLElement): Promise<void> {
  try {
    const job = stability ? await app.ask("stability", { map }) : await app.askEvidence(map);
    const text = job && `Started: ${job.what}. “Maps and work” shows how far it is.`;
    status.replaceChildren(text ? paragraph(text, "faint") : "");
  } catch (error) {
    status.replaceChildren(failure(error));
  }
}
