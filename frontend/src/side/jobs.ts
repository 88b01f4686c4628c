// Work under way and what became of it.
import type { App } from "../app.ts";
import { button, element } from "../dom.ts";
import type { JobInfo } from "../protocol.ts";
import { failure } from "./forms.ts";

const FINISHED_SHOWN = 4;

const isActive = (job: JobInfo): boolean => job.state === "waiting" || job.state === "running";

/** All jobs under way and the last ones that ended. Entries are kept, so that their buttons can be clicked. */
export function jobList(app: App): HTMLElement {
  const list = element("ul", { class: "jobs", "aria-label": "Work" });
  const entries = new Map<string, JobEntry>();
  app.jobs.watch((jobs) => {
    const shown = [...jobs.filter(isActive), ...jobs.filter((job) => !isActive(job)).slice(-FINISHED_SHOWN).reverse()];
    for (const id of entries.keys()) if (!shown.some((job) => job.id === id)) entries.delete(id);
    const roots = shown.map((job) => entryOf(app, entries, job).root);
    if (roots.length !== list.childElementCount || roots.some((root, i) => root !== list.children[i])) list.replaceChildren(...roots);
  });
  return list;
}

function entryOf(app: App, entries: Map<string, JobEntry>, job: JobInfo): JobEntry {
  const entry = entries.get(job.id) ?? new JobEntry(app, job.id);
  entries.set(job.id, entry);
  entry.update(job);
  return entry;
}

class JobEntry {
  readonly root: HTMLElement;
  private readonly what = element("strong");
  private readonly bar = element("progress", { max: 1 });
  private readonly status = element("p", { class: "faint" });
  private readonly problem = element("div");
  private readonly stop: HTMLButtonElement;
  private readonly cancel: HTMLButtonElement;

  constructor(private readonly app: App, private readonly id: string) {
    this.stop = button("Stop and keep", () => void this.end("stop"));
    this.cancel = button("Cancel", () => void this.end("cancel"));
    this.root = element("li", { class: "job" }, this.what, this.bar, this.status, element("div", { class: "buttons" }, this.stop, this.cancel), this.problem);
  }

  update(job: JobInfo): void {
    this.what.textContent = job.what;
    this.bar.setAttribute("aria-label", job.what);
    this.stop.setAttribute("aria-label", `Stop ${job.what} and keep the map so far`);
    this.cancel.setAttribute("aria-label", `Cancel ${job.what}`);
    if (job.fraction === null) this.bar.removeAttribute("value");
    else this.bar.value = job.fraction;
    const text = this.status;
    text.textContent = statusOf(job);
    text.className = job.state === "failed" ? "failure" : "faint";
    this.bar.hidden = this.cancel.hidden = !isActive(job);
    this.stop.hidden = !isActive(job) || !job.can_stop;
  }

  private async end(how: "stop" | "cancel"): Promise<void> {
    try {
      await this.app.ask(how, { job: this.id });
      this.problem.replaceChildren();
    } catch (error) {
      this.problem.replaceChildren(failure(error));
    }
  }
}

function statusOf({ state, status, seconds }: JobInfo): string {
  const took = seconds > 0 ? duration(seconds) : "";
  const words = state === "running" || state === "failed" ? (status || state) : [...new Set([state, status])].filter(Boolean).join("; ");
  return [words, took].filter(Boolean).join(" · ");
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
