// The entry: starts on the page of `manifoldry explore`, and renders the widget in notebooks.
import { App } from "./app.ts";
import { SocketConnection, WidgetConnection } from "./connection.ts";
import type { Connection, WidgetModel } from "./connection.ts";
import { layout } from "./layout.ts";

/** Shows the explorer in an element. */
async function mount(root: HTMLElement, connection: Connection): Promise<{ app: App; close: () => void }> {
  root.classList.add("manifoldry");
  const app = new App(connection, await connection.ask("start", {}));
  const clear = layout(root, app);
  const close = () => {
    clear();
    connection.close();
    root.replaceChildren();
  };
  return { app, close };
}

/** On the page: says when there is no explorer, and starts anew after a lost link. */
function serve(root: HTMLElement): void {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const connection = new SocketConnection(`ws://${location.host}/socket?token=${encodeURIComponent(token)}`);
  let app: App | null = null;
  connection.onLink = (link, text) => {
    if (link !== "connected") {
      if (!app) root.textContent = text;
      else if (link === "waiting") app.lost(text);
      else app.trouble.set(text);
    } else if (app) {
      // The server may have other maps now. One that was started anew refuses this link at once.
      connection.ask("start", {}).then(() => location.reload(), () => {});
    } else {
      mount(root, connection).then(
        (mounted) => (app = mounted.app),
        (error: Error) => (root.textContent = error.message),
      );
    }
  };
  connection.open();
}

const page = document.getElementById("manifoldry-explorer");
if (page) serve(page);

export default {
  render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
    el.style.height = `${model.get("height")}px`;
    const mounting = mount(el, new WidgetConnection(model));
    mounting.catch((error: Error) => (el.textContent = error.message));
    return () => void mounting.then(({ close }) => close(), () => {});
  },
};
