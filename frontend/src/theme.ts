// Light or dark: as the system or the notebook has it, unless it was chosen here.
import type { App } from "./app.ts";

export type Theme = "system" | "light" | "dark";
export const THEMES: Theme[] = ["system", "light", "dark"];
const KEPT = "manifoldry-theme";

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEPT) as Theme;
    return THEMES.includes(found) ? found : "system";
  } catch {
    return "system"; // a sandbox without storage
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEPT, theme);
  } catch {} // it lasts as long as the page then
}

/** The notebook's own theme; null if there is none that is known. */
function ofNotebook(): boolean | null {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  if (vscodeThemeKind) return !vscodeThemeKind.includes("light");
  return null;
}

export class ThemeChoice {
  theme: Theme = kept();
  private readonly system = matchMedia("(prefers-color-scheme: dark)");
  private readonly observer = new MutationObserver(() => this.apply());
  private readonly apply = () => {
    const dark = this.theme === "system" ? (ofNotebook() ?? this.system.matches) : this.theme === "dark";
    this.root.dataset.theme = dark ? "dark" : "light";
    this.app.dark.set(dark);
  };

  constructor(private readonly root: HTMLElement, private readonly app: App) {
    this.system.addEventListener("change", this.apply);
    this.observer.observe(document.body, { attributes: true });
    this.apply();
  }

  choose(theme: Theme): void {
    this.theme = theme;
    keep(theme);
    this.apply();
  }

  close(): void {
    this.system.removeEventListener("change", this.apply);
    this.observer.disconnect();
  }
}
