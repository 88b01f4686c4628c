// A form that fits one more map.
import type { App } from "../app.ts";
import { element } from "../dom.ts";
import type { MethodInfo } from "../protocol.ts";
import { buttons, failure, field, paragraph } from "./forms.ts";

const FOLLOW = "follow a homotopy, to move along it; its map can differ from the usual one";

export function addMapForm(app: App): HTMLElement {
  const { methods } = app.start;
  const select = element("select", {}, ...methods.map(({ name, title }) => element("option", { value: name }, title)));
  const details = element("div");
  const status = element("div", { role: "status" });
  let settings = new Settings(methods[0]!);
  select.addEventListener("change", () => {
    settings = new Settings(methods.find(({ name }) => name === select.value)!);
    details.replaceChildren(settings.root);
  });
  details.append(settings.root);
  const fit = async (event: Event) => {
    event.preventDefault();
    status.replaceChildren(await started(app, settings));
  };
  return element(
    "form", { class: "add-map", onsubmit: (event) => void fit(event) },
    element("h4", {}, "Add a map"), field("Method", select), details,
    buttons(element("button", { type: "submit" }, "Fit")), status,
  );
}

async function started(app: App, settings: Settings): Promise<HTMLElement> {
  try {
    const job = await app.ask("fit", settings.request());
    return paragraph(`Started: ${job.what}.`, "faint");
  } catch (error) {
    return failure(error);
  }
}

function settingInput(value: string): HTMLInputElement {
  const known = value === "None" ? "" : value; // None is chosen by the method
  return element("input", { type: "text", value: known, placeholder: "automatic", autocomplete: "off", spellcheck: "false" });
}

/** The usual parameters of a method. */
class Settings {
  readonly root: HTMLElement;
  private readonly inputs: [string, HTMLInputElement][];
  private readonly homotopy = element("input", { type: "checkbox" });

  constructor(private readonly method: MethodInfo) {
    this.inputs = method.settings.map(({ name, value }) => [name, settingInput(value)]);
    const follow = element("label", { class: "check" }, this.homotopy, FOLLOW);
    this.root = element(
      "div", {}, paragraph(method.use, "faint"),
      element("div", { class: "settings" }, ...this.inputs.map(([name, input]) => field(name, input))),
      method.has_homotopy && follow,
    );
  }

  /** Only what was changed is sent, so that defaults stay those of the method. */
  request(): { method: string; settings: Record<string, string>; homotopy: boolean } {
    const changed = this.inputs.filter(([, input]) => input.value.trim() !== input.defaultValue);
    const settings = Object.fromEntries(changed.map(([name, input]) => [name, input.value.trim()]));
    return { method: this.method.name, settings, homotopy: this.homotopy.checked };
  }
}
