// What a page loads for each entry of the package, as a server compresses it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const BESIDE = ["worklet.js", "colloquy_sdk_bg.wasm"];

const ENTRIES = {
  "@colloquy/sdk": ["index.mjs", ...BESIDE],
  "@colloquy/sdk/inline": ["inline.mjs"],
  "@colloquy/sdk/global": ["colloquy.global.js", ...BESIDE],
  "@colloquy/sdk/react": ["react.mjs", "index.mjs", ...BESIDE],
};

/** For each entry its files, with their bytes as they are and after gzip -9, and the sum of the latter. */
export function measure(dist) {
  return Object.entries(ENTRIES).map(([entry, names]) => {
    const files = names.map((name) => {
      const bytes = readFileSync(join(dist, name));
      return { name, bytes: bytes.length, gzipped: gzipSync(bytes, { level: 9 }).length };
    });
    return { entry, files, gzipped: files.reduce((sum, file) => sum + file.gzipped, 0) };
  });
}

export function describe(entries) {
  const row = (name, bytes, gzipped) => `${name.padEnd(24)} ${String(bytes).padStart(8)} ${String(gzipped).padStart(8)}`;
  const rows = entries.flatMap(({ entry, files, gzipped }) => [
    row(entry, "", gzipped),
    ...files.map((file) => row(`  ${file.name}`, file.bytes, file.gzipped)),
  ]);
  return [row("", "bytes", "gzip -9"), ...rows].join("\n");
}
