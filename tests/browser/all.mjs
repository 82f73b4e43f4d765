// All tests in one process, so that they share backend, sound cards and browsers. `node all.mjs NAME` plays the tests of
// one file; `--test-name-pattern=..` before it restricts them further, `BROWSER=chromium` to one browser.

import { readdirSync } from "node:fs";

import { playScenes } from "./stage/stage.mjs";

const END = ".test.mjs";

const all = readdirSync(new URL(".", import.meta.url)).filter((file) => file.endsWith(END)).sort();
const named = process.argv.slice(2).map((name) => name + END);
for (const file of named.length > 0 ? named : all) await import(`./${file}`);
playScenes();
