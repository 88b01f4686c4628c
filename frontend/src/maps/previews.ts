// Panels for the maps of running jobs so far, until the jobs end.
import type { JobInfo, MapInfo } from "../protocol.ts";
import type { MapGrid } from "./map_grid.ts";
import { MapView } from "./map_view.ts";

export class Previews {
  private readonly byJob = new Map<string, MapView>();
  private readonly ends: (() => void)[];

  constructor(private readonly grid: MapGrid, private readonly changed: () => void) {
    const { app } = grid;
    this.ends = [
      app.preview.onChange((preview) => preview && this.show(preview.job, preview.xy)),
      app.jobs.onChange((jobs) => this.removeEnded(jobs)),
    ];
  }

  get views(): MapView[] {
    return [...this.byJob.values()];
  }

  private show(id: string, xy: Float32Array): void {
    const job = this.grid.app.jobs.value.find((each) => each.id === id);
    if (!job || ended(job)) return;
    const found = this.byJob.get(id);
    if (found) return found.placement.moveTo(xy);
    const view = new MapView(this.grid, described(job), false);
    this.byJob.set(id, view);
    view.positions.arrived = true;
    view.placement.set(xy, xy, 1);
    void this.grid.painter.paint(view);
    this.changed();
  }

  private removeEnded(jobs: JobInfo[]): void {
    for (const [id, view] of this.byJob) {
      if (!ended(jobs.find((each) => each.id === id))) continue;
      this.byJob.delete(id);
      view.close();
      this.changed();
    }
  }

  close(): void {
    for (const each of this.ends) each();
    for (const view of this.byJob.values()) view.close();
  }
}

function ended(job: JobInfo | undefined): boolean {
  return !job || (job.state !== "waiting" && job.state !== "running");
}

/** The name of the method is the first part of what the job does: "t-SNE of 1,797 rows". */
function described(job: JobInfo): MapInfo {
  return {
    id: `job ${job.id}`, name: `${job.what.split(" of ")[0]}, so far`, method: null, n_components: 2, shown: [0, 1],
    redrawn: 0, steps: [], own_step: 0,
    can_invert: false, can_place: false, can_save: false, why_not: "This map is not finished yet.",
    evidence: "none", evidence_colors: [], n_unplaced: 0,
  };
}
