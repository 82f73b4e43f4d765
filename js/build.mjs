// Builds `dist/`: compiles the crate, generates its bindings, optimizes the wasm, and bundles the loader in all its forms.
//
//   node build.mjs
//
// Needs cargo with the wasm32-unknown-unknown target and a wasm-bindgen of the version in Cargo.lock.
// CARGO_TARGET_DIR is respected.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build, transform } from "esbuild";

import { fit } from "./glue.mjs";
import { trapPanics } from "./panics.mjs";
import { describe, measure } from "./sizes.mjs";

const js = dirname(fileURLToPath(import.meta.url));
const root = resolve(js, "..");
const target = resolve(root, process.env.CARGO_TARGET_DIR ?? "target");
const dist = join(js, "dist");
const bindings = join(target, "sdk-bindings");

function run(program, args) {
  console.log(`> ${program} ${args.join(" ")}`);
  execFileSync(program, args, { cwd: root, stdio: "inherit" });
}

// Panics name the files of crates; nobody else needs to know where this machine keeps them.
const crates = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "registry", "src");
run("cargo", [
  "build", "-p", "colloquy-sdk", "--lib", "--target", "wasm32-unknown-unknown", "--profile", "wasm",
  "--config", `target.wasm32-unknown-unknown.rustflags = ${JSON.stringify([`--remap-path-prefix=${crates}=crates`])}`,
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
  process.execPath,
  join(binaryen, "bin", "wasm-opt"),
  // What rustc turns on by default for this target.
  "--enable-bulk-memory",
  "--enable-bulk-memory-opt",
  "--enable-call-indirect-overlong",
  "--enable-multivalue",
  "--enable-mutable-globals",
  "--enable-nontrapping-float-to-int",
  "--enable-reference-types",
  "--enable-sign-ext",
];
const panicless = join(bindings, "panicless.wasm");
trapPanics(join(bindings, "colloquy_sdk_bg.wasm"), panicless, wasmOpt);
const optimize = [
  ...wasmOpt,
  // The second time finds a little more.
  "--flatten", "--rereloop", "-Oz", "--flatten", "--rereloop", "-Oz", "-Oz",
  // Functions inlined where they are called once make the wasm smaller, but its compressed form larger.
  "--flexible-inline-max-function-size", "0",
  "--one-caller-inline-max-function-size", "20",
  // Rust has no valid address below 1 KiB: the stack ends there.
  "--low-memory-unused",
  "--strip-debug",
  "--strip-producers",
  // The names between the wasm and its glue are long and many; the names they get are printed.
  "--minify-imports-and-exports-and-modules",
  "-o", wasm,
  panicless,
];
console.log(`> ${optimize.join(" ")}`);
const [program, ...flags] = optimize;
const renamed = JSON.parse(execFileSync(program, flags, { cwd: root, encoding: "utf8" }));

const gluePath = join(bindings, "colloquy_sdk.js");
writeFileSync(gluePath, fit(readFileSync(gluePath, "utf8"), renamed));

const bundling = { minify: true, target: "es2022", legalComments: "none", logLevel: "warning" };
const source = (name) => join(js, "src", name);

/** Bundles the loader; `files` tells it where the wasm and the worklet are. */
async function bundle(entry, out, files, format, define = {}) {
  await build({
    ...bundling,
    entryPoints: [source(entry)],
    outfile: join(dist, out),
    bundle: true,
    format,
    define,
    alias: { "#bindings": join(bindings, "colloquy_sdk.js"), "#files": source(`files/${files}.mjs`) },
  });
}

const worklet = await transform(readFileSync(source("worklet.js"), "utf8"), bundling);
// Vite puts files of less than 4 KiB into data: URLs, which a strict Content-Security-Policy blocks. Its `?no-inline`
// would be part of the file's name for other bundlers; trailing blanks work with all, and compress to a few bytes.
writeFileSync(join(dist, "worklet.js"), `${worklet.code}/*${" ".repeat(4096 - worklet.code.length)}*/\n`);

await bundle("index.mjs", "index.mjs", "beside", "esm");
await bundle("index.mjs", "inline.mjs", "inside", "esm", {
  WASM_BASE64: JSON.stringify(readFileSync(wasm, "base64")),
  WORKLET_SOURCE: JSON.stringify(worklet.code),
});
await bundle("global.mjs", "colloquy.global.js", "script", "iife");
// It imports index.mjs, so that an application that uses both has one SDK.
await build({
  ...bundling,
  entryPoints: [source("react.mjs")],
  outfile: join(dist, "react.mjs"),
  bundle: true,
  format: "esm",
  external: ["react", "./index.mjs"],
});
for (const name of ["index.d.ts", "global.d.ts", "react.d.ts"]) copyFileSync(source(name), join(dist, name));

console.log(describe(measure(dist)));
