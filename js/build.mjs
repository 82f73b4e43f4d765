// Builds `dist/`: compiles the crate, generates its bindings, optimizes the wasm, and bundles the loader.
//
//   node build.mjs
//
// Needs cargo with the wasm32-unknown-unknown target and a wasm-bindgen of the version in Cargo.lock.
// CARGO_TARGET_DIR is respected.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const js = dirname(fileURLToPath(import.meta.url));
const root = resolve(js, "..");
const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
const dist = join(js, "dist");
const bindings = join(target, "sdk-bindings");

function run(program, args) {
  console.log(`> ${program} ${args.join(" ")}`);
  execFileSync(program, args, { cwd: root, stdio: "inherit" });
}

run("cargo", [
  "build", "-p", "colloquy-sdk", "--lib", "--target", "wasm32-unknown-unknown", "--profile", "wasm",
]);

rmSync(bindings, { recursive: true, force: true });
run("wasm-bindgen", [
  "--target", "web",
  "--no-typescript",
  "--omit-default-module-path",
  "--out-dir", bindings,
  join(target, "wasm32-unknown-unknown", "wasm", "colloquy_sdk.wasm"),
]);

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const binaryen = dirname(createRequire(import.meta.url).resolve("binaryen/package.json"));
const wasm = join(dist, "colloquy_sdk_bg.wasm");
const wasmOpt = [
  join(binaryen, "bin", "wasm-opt"),
  "-Oz",
  // A large function inlined into its only caller saves a call and costs the likeness that gzip lives on.
  "--one-caller-inline-max-function-size=20",
  // What rustc turns on by default for this target.
  "--enable-bulk-memory",
  "--enable-bulk-memory-opt",
  "--enable-call-indirect-overlong",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
  "--strip-debug",
  "--strip-producers",
  // The names between the wasm and its glue are long and many; the names they get are printed.
  "--minify-imports-and-exports-and-modules",
  "-o", wasm,
  join(bindings, "colloquy_sdk_bg.wasm"),
];
console.log(`> ${wasmOpt.join(" ")}`);
const renamed = JSON.parse(execFileSync(process.execPath, wasmOpt, { cwd: root, encoding: "utf8" }));

const gluePath = join(bindings, "colloquy_sdk.js");
let glue = readFileSync(gluePath, "utf8");
for (const [, name, short] of renamed.imports) glue = replaceAll(glue, `${name}: function`, `${short}: function`);
for (const [name, short] of renamed.exports) glue = replaceAll(glue, `wasm.${name}`, `wasm.${short}`);
glue = replaceAll(glue, '"./colloquy_sdk_bg.js": import0', "a: import0");
writeFileSync(gluePath, glue);

/** Replaces a name where it ends as a whole, and insists that it is there. */
function replaceAll(text, from, to) {
  const pattern = new RegExp(`${from.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w$])`, "g");
  const replaced = text.replace(pattern, () => to);
  // Some exports are for threads and destructors that the glue does not name.
  if (replaced === text && from.includes(": ")) throw new Error(`${from} is not in the glue of wasm-bindgen`);
  return replaced;
}

const options = { minify: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };
await build({
  ...options,
  entryPoints: [join(js, "src", "index.mjs")],
  outfile: join(dist, "index.mjs"),
  bundle: true,
  alias: { "#bindings": join(bindings, "colloquy_sdk.js") },
});
await build({ ...options, entryPoints: [join(js, "src", "worklet.js")], outfile: join(dist, "worklet.js") });
copyFileSync(join(js, "src", "index.d.ts"), join(dist, "index.d.ts"));

let total = 0;
for (const name of ["index.mjs", "worklet.js", "colloquy_sdk_bg.wasm"]) {
  const bytes = readFileSync(join(dist, name));
  const gzipped = gzipSync(bytes, { level: 9 }).length;
  total += gzipped;
  console.log(`${name.padEnd(22)} ${String(bytes.length).padStart(7)} bytes, ${String(gzipped).padStart(6)} gzip -9`);
}
console.log(`${"together".padEnd(22)} ${" ".repeat(14)} ${String(total).padStart(6)} gzip -9`);
