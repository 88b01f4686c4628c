// What is computed now, or has failed, in words at the bottom of the page.
import type { App } from "./app.ts";
import { element } from "./dom.ts";
import type { JobInfo } from "./protocol.ts";

/** The work that runs, how much waits, and the last failure; empty if there is nothing to say. */
export function workText(jobs: JobInfo[]): string {
  const running = jobs.find((job) => job.state === "running");
  const waiting = jobs.filter((job) => job.state === "waiting").length;
  const last = jobs.filter((job) => job.state !== "waiting" && job.state !== "running").at(-1);
  const failed = last?.state === "failed" ? `${last.what} failed: ${last.status}` : "";
  if (!running && !waiting) return failed;
  const percent = running?.fraction ? ` ${Math.round(100 * running.fraction)}%` : "";
  const now = running ? `Computing ${running.what}${percent}` : "Computing";
  return [now, waiting ? `${waiting} waiting` : "", failed].filter(Boolean).join("; ");
}

export function workStatus(app: App): HTMLElement {
  const made = element("div", { class: "work-status" });
  app.jobs.watch((jobs) => {
    const text = workText(jobs);
    if (text === made.textContent) return;
    made.textContent = made.title = text;
  });
  return made;
}
