// Selects the native tests that a change can break first, for `tests/run quick`.
//
//   node tests/affected.mjs filter COMMIT     prints the tests to run, as a filter of the runner (`cargo nextest`), or nothing
//   node tests/affected.mjs left-out COMMIT   prints the affected tests that `filter` leaves out, likewise
//   node tests/affected.mjs parts COMMIT      prints the parts of `tests/run` that the change wants besides, on one line, or nothing
//   node tests/affected.mjs count             reads a list of the runner (`--message-format json`), prints how many tests of each module match
//
// The change is all that differs from the commit: what was committed, staged or edited since, and new files.
//
// It selects the unit tests of the packages that changed and of those that are built on them directly, and tests of whole servers by module. A change
// that reaches everything, such as one of the database, selects some of these modules; `tests/run` runs all.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const [what, since] = process.argv.slice(2);
const root = path.dirname(import.meta.dirname);

const run = (program, ...args) => execFileSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });

/** The tests of whole servers for a change that reaches everything: one path through each system. */
const SELECTION = ["http", "config", "process", "bases::characters", "text", "calls_recovery"];

/** The shortest tests of calls in which somebody speaks and is answered. */
const TALK = ["client", "media::talk"];

/** The tests of neural models. */
const NEURAL = ["bases", "media", "messaging", "models", "providers", "speech", "transcripts", "voices"].map((area) => `${area}::neural`);

/**
 * The tests of whole servers for a package, by module. A package that is not listed has the module of its own name, and `SELECTION` unless few
 * packages are built on it.
 */
const AREAS = {
  "colloquy-accounts": ["accounts", "ledger"],
  "colloquy-audio": [...TALK, "bases::recordings", "messaging::audio", "speech", "transcripts"],
  "colloquy-benchmarks": [],
  "colloquy-blobs": ["bases::storage"],
  "colloquy-calls": ["calls", "calls_recovery"],
  "colloquy-digitize": ["documents"],
  "colloquy-extract": ["documents"],
  "colloquy-formats": ["text", "speech"],
  "colloquy-fuzz": [],
  "colloquy-generation": ["text", "bases::embeddings"],
  "colloquy-http": ["http", "front", "input", "bodies"],
  "colloquy-index": ["bases::searching"],
  // The tests of models are selected to be named among those that are left out.
  "colloquy-inference": [...NEURAL, ...TALK, "models", "providers", "speech"],
  "colloquy-knowledge": ["bases::searching"],
  "colloquy-language": ["bases::searching", "speech", "transcripts"],
  "colloquy-observability": ["logs", "traces"],
  "colloquy-pgvector": ["bases::embeddings", "bases::searching"],
  "colloquy-protocol": ["calls", "client", "media"],
  "colloquy-providers": [...SELECTION, ...TALK, "messaging::audio", "providers", "speech"],
  "colloquy-sandbox": [...SELECTION, "documents", "sandbox", "speech"],
  "colloquy-speech": [...SELECTION, ...TALK, "speech", "voices::speaking"],
  "colloquy-test-routes": [...SELECTION, ...TALK],
  "colloquy-test-sounds": ["bases::recordings", "bases::videos", "documents", "logs", "messaging::audio", "sandbox", "transcripts", "voices"],
  "colloquy-transport": ["client", "media"],
  "colloquy-voice": ["media"],
  "colloquy-webhooks": ["calls_recovery"],
  "colloquy-word-errors": [],
};

/** The same for a module of the harness. A module that is not listed has `SELECTION` and `TALK`. */
const HARNESS = {
  client: ["client", "media"],
  disk: ["faults", "http", "transcripts::outages", "voices::outages", "bases::outages"],
  lost_commits: ["commits"],
  namespaces: ["media::addresses"],
  neural: [...NEURAL, "providers::kokoro_neural"],
  sounds: ["client", "accounts::deletion", "bases::recordings", "transcripts", "voices::speaking"],
};

/** The tests that read or compile files of other folders: all unit tests of packages, a filter of some, and tests of whole servers by module. */
const READERS = [
  { files: /^README\.md$/, areas: ["config"] },
  { files: /^backend\/([a-z]+\/)?src\/.*\.rs$/, units: "package(colloquy-observability) and test(every_metric_has_a_help_line)" },
  { files: /^backend\/index\/tests\/contract\//, packages: ["colloquy-pgvector"] },
  { files: /^examples\/character\.json$/, areas: ["providers::dialogues"] },
  { files: /^examples\/knowledge\//, packages: ["colloquy-providers"] },
  { files: /^tests\/benchmarks\/extract\//, packages: ["colloquy-extract"] },
  { files: /^tests\/benchmarks\/retrieve\/cranfield\.rs$/, areas: ["bases::neural"] },
  { files: /^tests\/data\/cranfield\//, packages: ["colloquy-benchmarks"], areas: ["bases::neural"] },
  {
    files: /^tests\/data\/documents\//,
    packages: ["colloquy-extract"],
    units: "package(colloquy-bases) and test(/^documents::/)",
    areas: ["bases", "documents"],
  },
  { files: /^tests\/recordings\//, packages: ["colloquy-providers", "colloquy-transcripts"], areas: [...TALK, "bases::recordings", "bases::videos", "messaging::audio", "providers::embedded", "transcripts", "voices"] },
];

/** Files that no native test reads or compiles. */
const UNREAD = [
  /^(\.ci|\.github|js|tests\/(browser|clients|pgvector|s3))\//,
  /^sdk-wasm\/(?!protocol\/)/,
  /^examples\/(?!character\.json$|knowledge\/)/,
  /^tests\/(?!Cargo\.toml$)[^/]*$/, // scripts and tables
  /^tests\/it\/clients(\/|\.rs$)/, // compiled by `lint`, and run by `clients` alone
  /^(\.gitignore|\.config\/(clippy|deny)\.toml|backend\/[A-Z]+\.md)$/,
  /(^|\/)LICENSE[^/]*$|\/README\.md$/,
];

/** Files of a package that are compiled into nothing but its own tests and examples. */
const ALONE = /^(examples|tests)\/|(^|[/_])tests(\.rs$|\/)/;

/** The parts of `tests/run`, in its order, that check what no selected test does, by the files that they are for. */
const PARTS = {
  build: /(^|\/)Cargo\.toml$/,
  unit: /^tests\/((pgvector|s3)\/|sharing\.mjs$)/,
  clients: /^tests\/(it\/)?clients(\/|\.rs$)|^tests\/browser\/stage\/waiting\.mjs$/,
  wasm: /^sdk-wasm\/|^js\/src\/worklet\.js$|^\.cargo\/config\.toml$/,
  package: /^(js|sdk-wasm)\/|^(examples\/)?README\.md$|^tests\/browser\/stage\/waiting\.mjs$/,
  browser: /^(examples|js|sdk-wasm|tests\/browser)\/(?!.*[A-Z]\.md$)/,
  deny: /(^|\/)Cargo\.(toml|lock)$|^\.config\/deny\.toml$/,
};

/** Tests of whole servers that take 10 to 60 seconds, with few exceptions. They run where their file changed. */
const LONG =
  "package(colloquy-tests) and " +
  "test(/^(bases|transcripts|voices)::(crashes|histories|outages)::|_take_(little_memory|the_memory_of_windows)$/)";

/** Unit tests that take long together. They run where their package itself changed. */
const LONG_UNITS = [
  "test(/fuzz/)",
  "(package(colloquy-audio) and test(/^media::/))",
  "(package(colloquy-bases) and test(/^vectorstores::|_for_seven_|_clock_ahead_/))",
  "(package(colloquy-index) and test(/(hostile|strange)_documents/))",
].join(" or ");

const files = (...args) => run("git", ...args).split("\0").filter(Boolean);

/** The files that changed. Without renames, a file that has moved counts where it was and where it is. */
const changed = () => [
  ...files("diff", "--name-only", "--no-renames", "-z", since, "--"),
  ...files("ls-files", "--others", "--exclude-standard", "-z"),
];

const packages = () =>
  JSON.parse(run("cargo", "metadata", "--format-version", "1", "--no-deps"))
    .packages.map(({ name, manifest_path: manifest, dependencies }) => ({
      name,
      folder: path.relative(root, path.dirname(manifest)),
      needs: dependencies.map((dependency) => dependency.name),
    }))
    .toSorted((a, b) => b.folder.length - a.folder.length);

const isModule = (area) =>
  ["it", "content", "harness"].some((target) => existsSync(path.join(root, "tests", target, `${area.replaceAll("::", "/")}.rs`)));

/** The tests of whole servers for a package, by what is built on it. */
function areasOf(name, built) {
  const own = [name.slice("colloquy-".length)].filter(isModule);
  const isForFew = built.includes("colloquy-backend") && built.length <= 3;
  return AREAS[name] ?? (isForFew && own.length > 0 ? own : [...SELECTION, ...own]);
}

const unitsOf = (names) => [...names].map((name) => `package(${name})`).join(" or ");
const testsOf = (modules) => `(package(colloquy-tests) and test(/^(${[...modules].join("|")})(::|$)/))`;

/** Throws if a table names a module or a package that is gone, which would select nothing, or fail in the runner. */
function checkTables(all) {
  const areas = [...Object.values(AREAS), ...Object.values(HARNESS), ...READERS.map((reader) => reader.areas ?? []), SELECTION].flat();
  const names = [...Object.keys(AREAS), ...READERS.flatMap((reader) => reader.packages ?? [])];
  const gone = [...areas.filter((area) => !isModule(area)), ...names.filter((name) => !all.some((place) => place.name === name))];
  if (gone.length > 0) throw new Error(`tests/affected.mjs names modules or packages that are gone: ${[...new Set(gone)].join(", ")}`);
}

/** Returns filters of all affected tests and of those to leave out of them, or `undefined` if no test is affected. */
function filters() {
  const all = packages();
  checkTables(all);
  const own = new Set(); // packages that changed
  const units = new Set(); // packages whose unit tests are selected
  const others = new Set(); // filters of single unit tests
  const areas = new Set(); // modules of tests of whole servers
  const edited = new Set(); // modules of these whose file changed
  const add = (to, ...values) => values.forEach((value) => to.add(value));

  for (const file of changed().filter((file) => !UNREAD.some((unread) => unread.test(file)))) {
    const readers = READERS.filter((reader) => reader.files.test(file));
    for (const reader of readers) {
      add(own, ...(reader.packages ?? []));
      if (reader.units) add(others, `(${reader.units})`);
      add(areas, ...(reader.areas ?? []));
    }

    const { name, folder } = all.find((place) => file.startsWith(`${place.folder}/`)) ?? {};
    const [, test] = file.match(/^tests\/(?:it|content)\/([a-z0-9_/]+)\./) ?? [];
    const [, harness] = file.match(/^tests\/harness\/([a-z0-9_]+)/) ?? [];
    if (test && test !== "main") {
      add(areas, test.split("/")[0]);
      if (test.includes("/")) add(edited, test.replaceAll("/", "::"));
    } else if (harness) {
      add(areas, ...(HARNESS[harness] ?? [...SELECTION, ...TALK]));
    } else if (name && name !== "colloquy-tests") {
      const built = all.filter(({ needs }) => needs.includes(name)).map((place) => place.name);
      add(own, name);
      // The tests that fuzz are what this package is for.
      if (name === "colloquy-fuzz") add(own, ...built);
      if (ALONE.test(path.relative(folder, file))) continue;
      add(units, ...built);
      add(areas, ...areasOf(name, built));
    } else if (readers.length === 0) {
      add(areas, ...SELECTION);
    }
  }
  add(units, ...own);
  // Tests of whole servers are selected by module, and those of the SDK run in browsers.
  for (const set of [own, units]) ["colloquy-tests", "colloquy-sdk"].forEach((name) => set.delete(name));

  const selected = [...others];
  if (units.size > 0) selected.push(unitsOf(units));
  if (areas.size > 0) selected.push(testsOf(areas));
  if (selected.length === 0) return undefined;
  const long = edited.size > 0 ? `${LONG} and not ${testsOf(edited)}` : LONG;
  const longUnits = own.size > 0 ? `(${LONG_UNITS}) and not (${unitsOf(own)})` : LONG_UNITS;
  return { affected: `(${selected.join(" or ")})`, long: `((${long}) or (${longUnits}))` };
}

const commands = {
  filter() {
    const found = filters();
    if (found) console.log(`${found.affected} and not ${found.long}`);
  },

  "left-out"() {
    const found = filters();
    if (found) console.log(`${found.affected} and (not default() or ${found.long})`);
  },

  parts() {
    const all = changed();
    const wanted = Object.keys(PARTS).filter((part) => all.some((file) => PARTS[part].test(file)));
    if (wanted.length > 0) console.log(wanted.join(" "));
  },

  count() {
    const suites = JSON.parse(readFileSync(0, "utf8"))["rust-suites"];
    const counts = new Map();
    for (const { "package-name": of, "binary-id": binary, testcases } of Object.values(suites)) {
      const matching = Object.entries(testcases).filter(([, test]) => test["filter-match"].status === "matches");
      for (const [name] of matching) {
        const place = of === "colloquy-tests" ? name.split("::").slice(0, -1).slice(0, 2).join("::") : binary.replace(/^colloquy-/, "");
        counts.set(place, (counts.get(place) ?? 0) + 1);
      }
    }
    if (counts.size > 0) console.log([...counts].toSorted().map(([place, count]) => `${place} (${count})`).join(", "));
  },
};

commands[what]();
