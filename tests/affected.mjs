// The native tests that a change can break first, as a filter of the runner (`cargo nextest`), for `tests/run quick`.
//
//   node tests/affected.mjs COMMIT   what changed since the commit, what is not committed included
//
// The unit tests of a changed package and of those that are built on it directly, and the tests of whole servers by their names. A change that
// reaches everything, such as one of the database, has a selection of these; `tests/run` runs them all.

import { execFileSync } from "node:child_process";
import path from "node:path";

const since = process.argv[2];

const lines = (program, ...args) =>
  execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28 }).split("\n").filter(Boolean);

/** What tests of whole servers look at of a package, where their name is not that of the package. */
const AREAS = {
  "colloquy-accounts": ["accounts", "ledger"],
  "colloquy-blobs": ["bases::storage", "store"],
  "colloquy-calls": ["calls", "calls_recovery"],
  "colloquy-digitize": ["documents"],
  "colloquy-extract": ["documents"],
  "colloquy-formats": ["text", "speech"],
  "colloquy-generation": ["text", "bases::embeddings"],
  "colloquy-http": ["http", "front", "input"],
  "colloquy-index": ["bases::searching"],
  "colloquy-knowledge": ["bases::searching"],
  "colloquy-observability": ["logs", "traces"],
  "colloquy-voice": ["media"],
  "colloquy-transport": ["media"],
  "colloquy-webhooks": ["calls_recovery"],
};

/** What is looked at of a change that reaches every test: a whole path through each system. */
const SELECTION = ["http", "config", "process", "store", "bases::characters", "text", "calls_recovery"];

/** Tests that take longer than all others together. */
const LONG = "test(/histories|neural|_memory|outlast|long_|fuzz|crashes/) or binary_id(colloquy-inference::kernels)";

const changed = [...lines("git", "diff", "--name-only", since), ...lines("git", "ls-files", "--others", "--exclude-standard")];

const { packages, workspace_root: root } = JSON.parse(
  execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], { encoding: "utf8", maxBuffer: 1 << 28 }),
);
const places = packages
  .map(({ name, manifest_path: manifest, dependencies }) => ({
    name,
    folder: path.relative(root, path.dirname(manifest)),
    needs: dependencies.map((dependency) => dependency.name),
  }))
  .toSorted((a, b) => b.folder.length - a.folder.length);

/** The package that a file is of; none for what no test compiles. */
const owner = (file) => places.find(({ folder }) => file.startsWith(folder === "" ? "" : `${folder}/`))?.name;

const native = ({ name }) => name !== "colloquy-sdk";
const units = new Set();
const areas = new Set();
for (const file of changed.filter((file) => /\.(rs|sql|toml|json|lock)$/.test(file) && !file.startsWith("js/"))) {
  const name = owner(file);
  const [, area] = file.match(/^tests\/(?:it|content)\/([a-z_]+)/) ?? [];
  if (area && area !== "main") areas.add(area);
  else if (name === "colloquy-tests" || name === undefined) SELECTION.forEach((one) => areas.add(one));
  else {
    units.add(name);
    const built = places.filter(({ needs }) => needs.includes(name)).filter(native);
    built.forEach((place) => units.add(place.name));
    const named = AREAS[name] ?? [name.slice("colloquy-".length)];
    const known = built.some((place) => place.name === "colloquy-backend") && built.length <= 3;
    (AREAS[name] || known ? named : SELECTION).forEach((one) => areas.add(one));
  }
}
units.delete("colloquy-tests");
units.delete("colloquy-sdk");

const tests = [...areas].map((area) => `test(/^${area}(::|$)/)`);
const filters = [...units].map((name) => `package(${name})`);
if (tests.length > 0) filters.push(`(package(colloquy-tests) and (${tests.join(" or ")}))`);
if (filters.length > 0) console.log(`(${filters.join(" or ")}) and not (${LONG})`);
