// Work under way and what became of it.
import type { App } from "../app.ts";
import { button, element } from "../dom.ts";
import type { JobInfo } from "../protocol.ts";
import { buttons, failure } from "./forms.ts";

const FINISHED_SHOWN = 4;
const SECOND_MS = 1000;

export const isActive = (job: JobInfo): boolean => job.state === "waiting" || job.state === "running";

/** All jobs under way and the last ones that ended. Entries are kept, so that their buttons can be clicked. */
export function jobList(app: App): HTMLElement {
  const list = element("ul", { class: "jobs", "aria-label": "Work" });
  const entries = new Map<string, JobEntry>();
  app.jobs.watch((jobs) => {
    const finished = jobs.filter((job) => !isActive(job)).slice(-FINISHED_SHOWN).reverse();
    const shown = [...jobs.filter(isActive), ...finished];
    for (const id of entries.keys()) if (!shown.some((job) => job.id === id)) entries.delete(id);
    const roots = shown.map((job) => entryOf(app, entries, job).root);
    const same = roots.length === list.childElementCount && roots.every((root, i) => root === list.children[i]);
    if (!same) list.replaceChildren(...roots);
  });
  tickWhileRunning(app, list, () => entries.forEach((entry) => entry.tick()));
  return list;
}

/** Once per second while a job runs; it ends with the page. */
function tickWhileRunning(app: App, list: HTMLElement, tick: () => void): void {
  let timer = 0;
  const end = () => {
    clearInterval(timer);
    timer = 0;
  };
  app.jobs.watch((jobs) => {
    const runs = jobs.some((job) => job.state === "running");
    if (!runs) end();
    else timer ||= window.setInterval(() => (list.isConnected ? tick() : end()), SECOND_MS);
  });
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
  private job: JobInfo | null = null;
  private arrived = 0; // when this was said about the job

  constructor(private readonly app: App, private readonly id: string) {
    this.stop = button("Stop and keep", () => void this.end("stop"));
    this.cancel = button("Cancel", () => void this.end("cancel"));
    const ends = buttons(this.stop, this.cancel);
    this.root = element("li", { class: "job" }, this.what, this.bar, this.status, ends, this.problem);
  }

  update(job: JobInfo): void {
    if (job === this.job) return;
    this.job = job;
    this.arrived = performance.now();
    this.what.textContent = job.what;
    this.bar.setAttribute("aria-label", job.what);
    this.stop.setAttribute("aria-label", `Stop ${job.what} and keep the map so far`);
    this.cancel.setAttribute("aria-label", `Cancel ${job.what}`);
    if (job.fraction === null) this.bar.removeAttribute("value");
    else this.bar.value = job.fraction;
    this.status.textContent = statusOf(job, job.seconds);
    this.status.className = job.state === "failed" ? "failure" : "faint";
    this.bar.hidden = this.cancel.hidden = !isActive(job);
    this.stop.hidden = !isActive(job) || !job.can_stop;
  }

  /** Between two messages, seconds go on. */
  tick(): void {
    const { job } = this;
    if (job?.state !== "running") return;
    this.status.textContent = statusOf(job, job.seconds + (performance.now() - this.arrived) / 1000);
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

function statusOf({ state, status }: JobInfo, seconds: number): string {
  const running = state === "running";
  const took = seconds > 0 ? duration(running ? Math.floor(seconds) : seconds) : "";
  const words = running || state === "failed" ? [status || state] : [...new Set([state, status])];
  return [words.filter(Boolean).join("; "), took].filter(Boolean).join(" · ");
}

function duration(seconds: number): string {
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
