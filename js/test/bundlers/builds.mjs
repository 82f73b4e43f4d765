// One function for each bundler: it builds the app from the package as a customer would, into a folder to be served.

import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { nodeResolve } from "@rollup/plugin-node-resolve";
import { importMetaAssets } from "@web/rollup-plugin-import-meta-assets";
import * as esbuild from "esbuild";
import { rollup } from "rollup";
import webpack from "webpack";

const here = dirname(fileURLToPath(import.meta.url));
const app = join(here, "app");

/** Vite's options; `vite` is 6 or newer. The cache does not know that the package was packed anew. */
export const viteOptions = (cacheDir) => ({ root: app, configFile: false, logLevel: "error", cacheDir });

export async function viteBuild(vite, outDir) {
  await vite.build({ ...viteOptions(join(outDir, ".vite")), build: { outDir, emptyOutDir: false } });
}

export async function webpackBuild(outDir) {
  const stats = await promisify(webpack)({
    mode: "production",
    context: app,
    entry: "./main.js",
    output: { path: outDir, filename: "main.js" },
  });
  if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString());
}

export async function rollupBuild(outDir) {
  const bundle = await rollup({
    input: join(app, "main.js"),
    plugins: [nodeResolve({ browser: true }), importMetaAssets()],
    onLog: (level, log) => { throw new Error(log.message); },
  });
  await bundle.write({ dir: outDir, format: "es" });
}

/** The files of the package beside the bundle: esbuild does not copy them. */
export function copyFiles(folder) {
  for (const [name, file] of [["wasm", "colloquy_sdk_bg.wasm"], ["worklet.js", "worklet.js"]]) {
    copyFileSync(fileURLToPath(import.meta.resolve(`@colloquy/sdk/${name}`)), join(folder, file));
  }
}

export async function esbuildBuild(entry, outDir, format) {
  await esbuild.build({
    entryPoints: [join(app, entry)],
    outfile: join(outDir, "main.js"),
    bundle: true,
    format,
    logLevel: "error",
    // Without a module there is no import.meta, and this page needs none.
    logOverride: { "empty-import-meta": "silent" },
  });
}
