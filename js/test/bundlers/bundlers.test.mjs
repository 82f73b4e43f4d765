// The packed package as customers use it: with each bundler, in each form, on a server and in a frame. Every page makes
// a whole call in Chromium and in Firefox, under a strict Content-Security-Policy where the bundler's output allows one.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import * as vite from "vite";
import * as vite7 from "vite-7";
import * as viteOldest from "vite-oldest";

import { SLOWNESS, scaled } from "../../../tests/browser/stage/waiting.mjs";
import { STRICT, files, goodCall, inBrowsers, page, visit } from "../browser.mjs";
import { copyFiles, esbuildBuild, rollupBuild, viteBuild, viteOptions, webpackBuild } from "./builds.mjs";

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
const js = join(here, "..", "..");
const installed = join(here, "node_modules", "@colloquy", "sdk");
const work = mkdtempSync(join(tmpdir(), "colloquy-bundlers-"));

/** What `npm install` of the tarball does, without asking a registry for the other packages again. */
before(async () => {
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", work], { cwd: js });
  rmSync(installed, { recursive: true, force: true });
  mkdirSync(installed, { recursive: true });
  await run("tar", ["-xzf", join(work, stdout.trim()), "-C", installed, "--strip-components=1"]);
});

after(() => rmSync(work, { recursive: true, force: true }));

const folder = (name) => {
  const path = join(work, name);
  mkdirSync(path, { recursive: true });
  return path;
};

const mainPage = { "/index.html": page("/main.js") };

test("Node imports every entry", async () => {
  for (const entry of ["", "/inline", "/react", "/global"]) await import(`@colloquy/sdk${entry}`);
  assert.equal(typeof globalThis.Colloquy.CallManager, "function");
  for (const file of ["wasm", "worklet.js", "package.json"]) {
    assert.ok(existsSync(fileURLToPath(import.meta.resolve(`@colloquy/sdk/${file}`))), file);
  }
});

for (const [name, bundler, optimizeDeps] of [
  ["the newest Vite", vite, {}],
  ["Vite 7", vite7, { exclude: ["@colloquy/sdk"] }],
  ["the oldest maintained Vite", viteOldest, { exclude: ["@colloquy/sdk"] }],
]) {
  test(`${name}, built`, inBrowsers, async (t) => {
    const out = folder(`vite-${bundler.version}`);
    await viteBuild(bundler, out);
    assert.equal(await visit(t, files([out])), goodCall());
  });

  test(`${name}, development server`, inBrowsers, async (t) => {
    const server = await bundler.createServer({
      ...viteOptions(folder(`vite-${bundler.version}-cache`)),
      optimizeDeps,
      appType: "spa",
      server: { middlewareMode: true, hmr: false, ws: false, fs: { allow: [join(js, "..")] } },
    });
    t.after(() => server.close());
    assert.equal(await visit(t, server.middlewares), goodCall());
  });
}

test("webpack", inBrowsers, async (t) => {
  const out = folder("webpack");
  await webpackBuild(out);
  assert.equal(await visit(t, files([out], { pages: mainPage })), goodCall());
});

test("Rollup", inBrowsers, async (t) => {
  const out = folder("rollup");
  await rollupBuild(out);
  assert.equal(await visit(t, files([out], { pages: mainPage })), goodCall());
});

test("esbuild, a module with the files beside it", inBrowsers, async (t) => {
  const out = folder("esbuild");
  await esbuildBuild("main.js", out, "esm");
  copyFiles(out);
  assert.equal(await visit(t, files([out], { pages: mainPage })), goodCall());
});

test("esbuild, a classic script with the files elsewhere", inBrowsers, async (t) => {
  const out = folder("esbuild-elsewhere");
  await esbuildBuild("elsewhere.js", out, "iife");
  copyFiles(folder("esbuild-elsewhere/sdk"));
  assert.equal(await visit(t, files([out], { pages: mainPage })), goodCall());
});

test("the package in one file makes calls without its worklet, which the policy blocks", inBrowsers, async (t) => {
  const out = folder("inline");
  await esbuildBuild("inline.js", out, "iife");
  assert.deepEqual(readdirSync(out), ["main.js"]);
  assert.equal(await visit(t, files([out], { pages: mainPage })), goodCall({ level: "no level" }));
});

test("a plain script tag", inBrowsers, async (t) => {
  const out = folder("global");
  await esbuildBuild("global.js", out, "esm");
  cpSync(join(installed, "dist"), join(out, "vendor"), { recursive: true });
  const pages = { "/index.html": page("/main.js", "/vendor/colloquy.global.js") };
  assert.equal(await visit(t, files([out], { pages })), goodCall());
});

for (const [what, allow, expected] of [
  ["with the microphone allowed", ' allow="microphone"', /^onCallStart\n.*\nonConnected\n.*\nlevel\nreleased$/s],
  ["with nothing allowed", "", /\nonCallError CallError:MICROPHONE_DENIED\n.*\nonHangUp\nno level\nreleased$/s],
]) {
  test(`a frame of another site ${what}`, inBrowsers, async (t) => {
    const out = folder("frame");
    await esbuildBuild("main.js", out, "esm");
    copyFiles(out);
    const framed = files([out], { pages: mainPage });
    const handler = (request, response) => {
      const { port } = request.socket.address();
      const pages = { "/index.html": `<!doctype html><iframe src="http://127.0.0.1:${port}/?slowness=${SLOWNESS}"${allow}></iframe>` };
      const framing = files([], { pages, policy: "default-src 'none'; frame-src http://127.0.0.1:*" });
      return (request.headers.host.startsWith("localhost") ? framing : framed)(request, response);
    };
    assert.match(await visit(t, handler, (port) => `http://localhost:${port}/`), expected);
  });
}

test("Next.js renders on the server and makes calls", { ...inBrowsers, timeout: scaled(300_000) }, async (t) => {
  const app = join(here, "next");
  const next = join(here, "node_modules", "next", "dist", "bin", "next");
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" };
  rmSync(join(app, ".next"), { recursive: true, force: true });
  await run(process.execPath, [next, "build"], { cwd: app, env });
  const port = await freePort();
  const server = spawn(process.execPath, [next, "start", "-H", "127.0.0.1", "-p", port], { cwd: app, env, stdio: "ignore" });
  t.after(() => server.kill());
  const origin = `http://127.0.0.1:${port}/`;
  assert.match(await textOf(origin, server), /status: (<!-- -->)?idle/);
  const none = files([], { policy: STRICT });
  const report = await visit(t, none, (own) => `${origin}?report=http://127.0.0.1:${own}/report`);
  assert.equal(report, goodCall());
});

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

/** A page's text, as soon as its server answers. */
async function textOf(url, server) {
  while (server.exitCode === null) {
    const answer = await fetch(url).catch(() => null);
    if (answer?.ok) return answer.text();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`the server ended with ${server.exitCode}`);
}
