// All tests in one process, so that they share backend, sound card and browsers. `node --test FILE` runs one file.

import { readdirSync } from "node:fs";

const files = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs")).sort();
for (const file of files) await import(`./${file}`);
