// Chromium and Firefox visit a page that a test serves, and the page reports how it went with a POST to /report.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after } from "node:test";

import { SLOWNESS, scaled } from "../../tests/browser/stage/waiting.mjs";

/** The browsers, with a microphone that beeps, and what starts each with a profile of its own. */
const BROWSERS = [
  {
    program: process.env.CHROMIUM ?? "/usr/bin/chromium",
    options: (profile) => [
      "--headless", "--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
      "--autoplay-policy=no-user-gesture-required", "--disable-background-networking", "--disable-popup-blocking", "--remote-debugging-port=0",
      "--js-flags=--expose-gc",
      `--user-data-dir=${profile}`,
    ],
  },
  {
    program: process.env.FIREFOX ?? "/usr/bin/firefox-esr",
    options(profile) {
      const settings = {
        "media.navigator.streams.fake": true,
        "media.navigator.permission.disabled": true,
        "media.autoplay.default": 0,
        "dom.disable_open_during_load": false,
        "dom.testing.testutils.enabled": true,
      };
      const lines = Object.entries(settings).map(([name, value]) => `user_pref("${name}", ${value});\n`);
      writeFileSync(join(profile, "user.js"), lines.join(""));
      return ["--headless", "--no-remote", "--profile", profile];
    },
  },
];

const missing = BROWSERS.map(({ program }) => program).find((program) => !existsSync(program));
const lack = missing ? `there is no ${missing}: CHROMIUM and FIREFOX name other browsers` : false;
// A run of all checks, which has this variable, has got the browsers; whoever runs the package's tests alone may do without.
if (lack && process.env.COLLOQUY_TEST_REMARKS) throw new Error(lack);

/** The options of a test that needs the browsers, which may take so long. */
export const inBrowsers = { skip: lack, timeout: scaled(120_000) };

/** The policy that the guide says is enough: nothing that is not named, nothing inline, nothing from blob: or data:. */
export const [STRICT] = readFileSync(new URL("../docs/csp.md", import.meta.url), "utf8")
  .match(/^default-src 'none';[^`]*$/m)
  .map((policy) => policy.trim().replace(/\s+/g, " "));

const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** Serves files from folders, the first that has one, under a policy. `pages` are texts in place of files. */
export function files(folders, { pages = {}, policy = STRICT } = {}) {
  return async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const name = pathname === "/" ? "/index.html" : pathname;
    const folder = folders.find((candidate) => existsSync(join(candidate, name)));
    const body = pages[name] ?? (folder && await readFile(join(folder, name)));
    response.writeHead(body === undefined ? 404 : 200, {
      "Content-Type": TYPES[extname(name)] ?? "text/plain",
      "Content-Security-Policy": policy,
    });
    response.end(body);
  };
}

/** A page that runs a module, or a classic script before it. */
export const page = (module, script) =>
  `<!doctype html>${script ? `<script src="${script}"></script>` : ""}<script type="module" src="${module}"></script>`;

/** What the first tab of a browser shows: it opens each page that is to be visited in a tab, in place of the one before. */
const LOBBY = `<!doctype html><script>
  let tab;
  new EventSource("/visits").onmessage = ({ data }) => {
    tab?.close();
    tab = open(data);
  };
</script>`;

/** A browser of this process, which visits one page after the other: starting one takes longer than most visits. */
class Visitor {
  #profile = mkdtempSync(join(tmpdir(), "colloquy-browser-"));
  #process;
  #visits;
  #server = createServer((request, response) => {
    const isStream = request.url === "/visits";
    response.writeHead(200, { "Content-Type": isStream ? "text/event-stream" : "text/html" });
    if (!isStream) return response.end(LOBBY);
    response.flushHeaders();
    this.#visits = response;
    this.#server.emit("visitor");
  });

  /** Starts the browser; `ready` fails when it ends before it can visit anything. */
  constructor({ program, options }) {
    this.ready = new Promise((resolve, reject) => {
      this.#server.once("visitor", resolve);
      this.#server.listen(0, "127.0.0.1", () => {
        const address = `http://127.0.0.1:${this.#server.address().port}/`;
        const ended = (error, _, stderr) => reject(new Error(`${program} ended: ${error?.message ?? stderr}`));
        this.#process = execFile(program, [...options(this.#profile), address], ended);
      });
    });
    // Whoever visits hears of it.
    this.ready.catch(() => {});
  }

  async open(url) {
    await this.ready;
    this.#visits.write(`data: ${url}\n\n`);
  }

  async close() {
    if (this.#process?.exitCode === null && this.#process.signalCode === null) {
      const exited = new Promise((resolve) => this.#process.once("exit", resolve));
      this.#process.kill();
      await exited;
    }
    this.#server.closeAllConnections();
    this.#server.close();
    // The browser's other processes end a little later, and write until then.
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 20 });
  }
}

let visitors = [];
after(() => Promise.all(visitors.map((visitor) => visitor.close())));

/**
 * Opens a page, which `handler` serves, in each browser, and gives back its report, which is the same in all of them.
 * `address` makes its URL from the server's port; the page is told how slow the machine is.
 */
export async function visit(t, handler, address = (port) => `http://127.0.0.1:${port}/`) {
  if (visitors.length === 0) visitors = BROWSERS.map((browser) => new Visitor(browser));
  const [report, ...others] = await Promise.all(visitors.map((visitor) => visitIn(visitor, t, handler, address)));
  for (const other of others) assert.equal(other, report, "the browsers do not agree");
  return report;
}

async function visitIn(visitor, t, handler, address) {
  let reported;
  const report = new Promise((resolve) => { reported = resolve; });
  const server = createServer(async (request, response) => {
    if (request.url !== "/report") return handler(request, response);
    let text = "";
    for await (const chunk of request) text += chunk;
    response.end();
    reported(text);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(address(server.address().port));
  url.searchParams.set("slowness", SLOWNESS);
  await visitor.open(url.href);
  return report;
}

/** What `placeCall` of call.mjs reports of a good call; without its worklet there is no level. */
export const goodCall = ({ level = "level" } = {}) => [
  "onCallStart",
  'onStatusUpdate "starting"',
  "onCallStarting",
  "onConnected",
  'onStatusUpdate "ongoing"',
  'onStatusUpdate "completed"',
  "onHangUp",
  level,
  "released",
].join("\n");
