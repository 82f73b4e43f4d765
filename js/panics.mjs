// Removes the messages of Rust's panics from the wasm. A panic ends in a trap with or without them, and the wasm has no output
// where its standard library could print them.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

import binaryen from "binaryen";

/** A path of the standard library, as the names of functions have it. */
const path = (crate, rest) => `${crate}\\[[0-9a-f]+\\]::${rest}`;

/** Functions that panic whenever they are called. */
const PANICS = new RegExp(`^(${[
  path("core", "panicking::panic\\w*(::.*)?"),
  path("core", "(option|result)::(unwrap|expect)_failed"),
  path("core", "cell::(lazy::)?panic_\\w+"),
  path("core", "(slice|str)::.*_fail(_rt)?"),
  path("alloc", "raw_vec::(handle_error|capacity_overflow)"),
  path("alloc", "alloc::handle_alloc_error"),
].join("|")})$`);

/** Functions that make a panic's message. */
const MESSAGES = new RegExp([path("core", "fmt::"), path("alloc", "fmt::"), path("std", "panicking::")].join("|"));

/** Replaces both kinds by traps, and insists that no other function calls one that would have made a message. */
export function trapPanics(from, to, wasmOpt) {
  binaryen.setDebugInfo(true);
  const wasm = binaryen.readBinary(readFileSync(from));
  let panics = 0;
  for (let index = 0; index < wasm.getNumFunctions(); index += 1) {
    const reference = wasm.getFunctionByIndex(index);
    const { name, module } = binaryen.getFunctionInfo(reference);
    if (PANICS.test(name)) panics += 1;
    else if (module || !MESSAGES.test(name)) continue;
    binaryen.Function(reference).body = wasm.unreachable();
  }
  if (panics === 0) throw new Error("no function of the wasm panics: their names must have changed");
  writeFileSync(to, wasm.emitBinary());
  wasm.dispose();
  const [program, ...options] = wasmOpt;
  const calls = execFileSync(program, [...options, "--quiet", "--remove-unused-module-elements", "--print-call-graph", to], {
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  for (const [, caller, called] of calls.matchAll(/^ *"(.*)" -> "(.*)"; \/\/ call$/gm)) {
    if (MESSAGES.test(called)) throw new Error(`${caller} formats text, which the page has no code for: ${called}`);
  }
}
