// Bundles a module of the console, so that Node.js can import it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { build } from "esbuild";

const folder = mkdtempSync(path.join(tmpdir(), "colloquy-console-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** Imports modules below `src/` as one: what they share, such as a class of errors, is the same. */
export async function load(...modules) {
  const outfile = path.join(folder, `${modules.join("-").replaceAll(/\W/g, "-")}.mjs`);
  const contents = modules.map((module) => `export * from ${JSON.stringify(`./${module}`)};`).join("\n");
  const stdin = { contents, resolveDir: path.join(import.meta.dirname, "../src") };
  await build({ stdin, outfile, bundle: true, format: "esm", platform: "node", logLevel: "error" });
  return import(pathToFileURL(outfile));
}
