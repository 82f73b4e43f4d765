// Builds `dist/`: the files that the server embeds and serves below `/console`.
//
//   node build.mjs
//
// All file names but those of the pages contain a hash of the content. Each file has compressed copies. The build fails if a page exceeds its
// bound, or if the licence of a package is not allowed. A failed build leaves the old `dist/`.
//
// The page for calls has the SDK of `../dist` in it. Where that was not built, the page is left out, and the console says so.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import { build } from "esbuild";

import { licenseTexts, packagesIn } from "./licenses.mjs";

const console_ = import.meta.dirname;
const finished = path.join(console_, "dist");
/** Folder of this build until it is complete. */
const dist = path.join(console_, `dist-${process.pid}`);
process.on("exit", () => rmSync(dist, { recursive: true, force: true }));
const assets = path.join(dist, "assets");

/** Bound of the first load, in bytes after gzip. */
const MAX_FIRST_BYTES = 60_000;
/** Bound of the page for calls, with the SDK. */
const MAX_TALK_BYTES = 120_000;

const sdk = path.join(console_, "../dist");
const hasSdk = ["index.mjs", "colloquy_sdk_bg.wasm", "worklet.js"].every((file) => existsSync(path.join(sdk, file)));

const lucide = path.dirname(createRequire(import.meta.url).resolve("lucide-static/package.json"));

/** Returns the shapes of an icon of Lucide. */
function shapes(name) {
  const icon = readFileSync(path.join(lucide, "icons", `${name}.svg`), "utf8");
  const inside = icon.slice(icon.indexOf(">", icon.indexOf("<svg")) + 1, icon.lastIndexOf("</svg>"));
  return inside.replaceAll(/\s+/g, " ").trim();
}

/** Returns the icon of the page. */
function pageIcon() {
  const lines = 'fill="none" stroke="#3346c4" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" ${lines}>${shapes("audio-lines")}</svg>\n`;
}

/** Returns the icons of `src/ui/icon.tsx` as one SVG, each a symbol of its name. */
function sprite() {
  const source = readFileSync(path.join(console_, "src/ui/icon.tsx"), "utf8");
  const names = source.match(/export const ICONS = \[([^\]]*)\]/)?.[1].match(/[a-z0-9-]+/g) ?? [];
  const symbols = names.map((name) => `<symbol id="${name}" viewBox="0 0 24 24">${shapes(name)}</symbol>`);
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join("")}</svg>\n`;
}

function writeHashed(name, content) {
  const { name: stem, ext } = path.parse(name);
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 8).toUpperCase();
  const file = `${stem}-${hash}${ext}`;
  writeFileSync(path.join(assets, file), content);
  return `/console/assets/${file}`;
}

const pdfjs = path.dirname(createRequire(import.meta.url).resolve("pdfjs-dist/package.json"));

/**
 * Files that pdf.js loads itself: maps of characters, fonts that browsers lack, and decoders of images. These are scripts: WebAssembly would need a wider
 * policy.
 */
const PDF_FILES = [
  ...readdirSync(path.join(pdfjs, "cmaps")).filter((file) => file.endsWith(".bcmap")).map((file) => `cmaps/${file}`),
  "standard_fonts/FoxitDingbats.pfb",
  "standard_fonts/FoxitSymbol.pfb",
  ...["Regular", "Bold", "Italic", "BoldItalic"].map((style) => `standard_fonts/LiberationSans-${style}.ttf`),
  "wasm/jbig2_nowasm_fallback.js",
  "wasm/openjpeg_nowasm_fallback.js",
];
const PDF_LICENSES = ["cmaps/LICENSE", "standard_fonts/LICENSE_FOXIT", "standard_fonts/LICENSE_LIBERATION", "wasm/LICENSE_JBIG2", "wasm/LICENSE_OPENJPEG", "wasm/LICENSE_PDFJS_JBIG2", "wasm/LICENSE_PDFJS_OPENJPEG"];
/** Files that are compressed already. */
const PACKED = /\.(bcmap|pfb)$/;

/** Copies the files of pdf.js into a folder whose name has their hash, and returns its address. */
function copyPdfFiles() {
  const hash = createHash("sha256");
  for (const file of PDF_FILES) hash.update(file).update(readFileSync(path.join(pdfjs, file)));
  const folder = `pdf-${hash.digest("hex").slice(0, 8).toUpperCase()}`;
  for (const file of PDF_FILES) {
    const to = path.join(assets, folder, file);
    mkdirSync(path.dirname(to), { recursive: true });
    writeFileSync(to, readFileSync(path.join(pdfjs, file)));
  }
  return `/console/assets/${folder}/`;
}

mkdirSync(assets, { recursive: true });
const pdfWorker = writeHashed("pdf-worker.js", readFileSync(path.join(pdfjs, "legacy/build/pdf.worker.min.mjs")));
const icons = writeHashed("icons.svg", sprite());
const bundling = {
  outdir: dist,
  entryNames: "assets/[name]-[hash]",
  chunkNames: "assets/[name]-[hash]",
  assetNames: "assets/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  metafile: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
};

/** Bundles what an entry in `src/` needs. Returns its script and its styles, which come first, all files that it loads at once, and its packages. */
async function bundle(entry, define, alias = {}) {
  const entryPoints = [path.join(console_, "src", entry)];
  const { metafile } = await build({ ...bundling, entryPoints, alias, define: { ICONS_URL: JSON.stringify(icons), ...define } });
  const outputs = Object.entries(metafile.outputs).map(([file, output]) => ({ file: path.resolve(file), ...output }));
  const main = outputs.find(({ entryPoint }) => entryPoint?.endsWith(`src/${entry}`));
  const first = [main.file, path.resolve(main.cssBundle)];
  for (const file of first) {
    const { imports = [] } = outputs.find((output) => output.file === file) ?? {};
    for (const { path: imported, kind } of imports) {
      if (kind === "import-statement" && !first.includes(path.resolve(imported))) first.push(path.resolve(imported));
    }
  }
  return { first, packages: packagesIn(metafile).map((folder) => path.resolve(folder)) };
}

const ofMain = { HAS_TALK: hasSdk, PDF_WORKER_URL: pdfWorker, PDF_FILES_URL: copyPdfFiles() };
const define = Object.fromEntries(Object.entries(ofMain).map(([name, value]) => [name, JSON.stringify(value)]));
const pages = { "index.html": await bundle("main.tsx", define) };
if (hasSdk) {
  const urlOf = (name) => JSON.stringify(writeHashed(name, readFileSync(path.join(sdk, name))));
  const define = { SDK_WASM_URL: urlOf("colloquy_sdk_bg.wasm"), SDK_WORKLET_URL: urlOf("worklet.js") };
  // Bundled apart, so that the files of the console stay as they are.
  pages["talk.html"] = await bundle("talk.tsx", define, { "@colloquy/sdk": path.join(sdk, "index.mjs") });
  const loaded = Object.values(define).map((address) => path.join(assets, path.basename(JSON.parse(address))));
  pages["talk.html"].first.push(...loaded);
}
const packages = new Set(Object.values(pages).flatMap((page) => page.packages));
const licenses = writeHashed("licenses.txt", licenseTexts([...packages, lucide], PDF_LICENSES.map((file) => path.join(pdfjs, file))));
const icon = writeHashed("icon.svg", pageIcon());
const url = (file) => `/console/${path.relative(dist, file)}`;
for (const [name, { first }] of Object.entries(pages)) {
  const [script, styles] = first;
  writeFileSync(
    path.join(dist, name),
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Colloquy</title>
<link rel="icon" type="image/svg+xml" href="${icon}">
<link rel="license" type="text/plain" href="${licenses}">
<link rel="stylesheet" href="${url(styles)}">
<script type="module" src="${url(script)}"></script>
</head>
<body><div id="app"></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`,
  );
  first.push(path.join(dist, name));
}

const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const bytes = Object.fromEntries(Object.keys(pages).map((name) => [name, 0]));
for (const entry of files) {
  const file = path.join(entry.parentPath, entry.name);
  if (PACKED.test(file)) continue;
  const content = readFileSync(file);
  const zipped = gzipSync(content, { level: 9 });
  writeFileSync(`${file}.gz`, zipped);
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  for (const [name, { first }] of Object.entries(pages)) bytes[name] += first.includes(file) ? zipped.length : 0;
}
for (const [name, most] of [["index.html", MAX_FIRST_BYTES], ["talk.html", MAX_TALK_BYTES]]) {
  if (bytes[name] > most) throw new Error(`${name} takes ${bytes[name]} bytes, more than ${most}`);
}

// Committed, so that the folder exists in a fresh clone.
writeFileSync(path.join(dist, ".gitkeep"), "");
/** The names of a build's files, which say what the files hold, and the pages. */
function contents(folder) {
  const found = ["index.html", "talk.html"].map((name) => path.join(folder, name)).filter((page) => existsSync(page));
  if (found.length === 0) return "";
  return [...readdirSync(folder, { recursive: true }).sort(), ...found.map((page) => readFileSync(page, "utf8"))].join("\n");
}

// What has not changed keeps its times, so that the server is not compiled again for it.
if (contents(dist) === contents(finished)) {
  rmSync(dist, { recursive: true });
} else {
  const old = `${dist}-old`;
  if (existsSync(finished)) renameSync(finished, old);
  renameSync(dist, finished);
  rmSync(old, { recursive: true, force: true });
}
const talk = hasSdk ? `${bytes["talk.html"]} for the page of calls` : "without the page of calls, since the SDK was not built";
console.log(`the console: ${files.length} files, ${bytes["index.html"]} bytes for the first load, ${talk}`);
