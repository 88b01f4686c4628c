// Bundles src into src/manifoldry/explorer/static, where the Python package finds it.
// The first line of each file has a hash of the sources, by which a test sees that both agree.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));

function sources() {
  const found = readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath, entry.name)).split(sep).join("/"));
  return [...found, "package-lock.json", "build.mjs"].sort();
}

const hash = createHash("sha256");
for (const name of sources()) hash.update(`${name}\0`).update(readFileSync(join(here, name))).update("\0");
const banner = `/* manifoldry explorer; sources ${hash.digest("hex")} */`;

await build({
  entryPoints: { explorer: join(here, "src/main.ts"), style: join(here, "src/style.css") },
  outdir: join(here, "../src/manifoldry/explorer/static"),
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  legalComments: "none",
  loader: { ".glsl": "text" },
  banner: { js: banner, css: banner },
  logLevel: "info",
});
