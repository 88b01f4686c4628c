// The parts of the side column, in their order.
import type { App } from "../app.ts";
import { colorPanel } from "./color.ts";
import { evidencePanel } from "./evidence.ts";
import { newPointsPanel } from "./new_points.ts";
import { notesPanel } from "./notes.ts";
import { reconstructionPanel } from "./reconstruction.ts";
import { rowPanel } from "./row.ts";
import { searchPanel } from "./search.ts";
import { selectionPanel } from "./selection.ts";
import { workPanel } from "./work.ts";

const PANELS = [
  colorPanel, searchPanel, rowPanel, reconstructionPanel, newPointsPanel,
  selectionPanel, evidencePanel, workPanel, notesPanel,
];

export function sidePanels(app: App): HTMLElement[] {
  return PANELS.map((make) => make(app));
}
