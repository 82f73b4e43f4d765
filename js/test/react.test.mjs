// The hook with the real React, in its development build and under StrictMode, and on a server.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { useCall } from "@colloquy/sdk/react";
import { build } from "esbuild";
import { createElement } from "react";
import { renderToString } from "react-dom/server";

import { files, inBrowsers, page, visit } from "./browser.mjs";

const here = dirname(fileURLToPath(import.meta.url));

test("a server renders the hook as idle", () => {
  const Caller = () => {
    const { status, isActive, transcript, muted, error, agentState, start } = useCall({ onHangUp() {} });
    return JSON.stringify([status, isActive, transcript, muted, error, agentState, typeof start]);
  };
  assert.equal(
    renderToString(createElement(Caller)).replaceAll("&quot;", '"'),
    '["idle",false,[],false,null,null,"function"]',
  );
});

for (const [version, alias] of [["newest", {}], ["oldest", { react: "react18", "react-dom": "react-dom18" }]]) {
  test(`the hook makes calls under StrictMode, in the ${version} React`, inBrowsers, async (t) => {
    const { outputFiles } = await build({
      entryPoints: [join(here, "react-page.jsx")],
      bundle: true,
      write: false,
      format: "esm",
      jsx: "automatic",
      alias,
      define: { "process.env.NODE_ENV": '"development"' },
      logLevel: "warning",
    });
    const pages = { "/index.html": page("/page.js"), "/page.js": outputFiles[0].text };
    const report = await visit(t, files([join(here, "..", "dist")], { pages }));
    assert.ok(report.startsWith("{"), report);
    assert.deepEqual(JSON.parse(report), {
      "StrictMode makes one call, and unmounting ends it": [1, 1, true, "idle starting ongoing", 1, true],
      "what the call tells is state, and the operations reach it": [
        "CALL_ACTIVE", "thinking", "three two", true, "hello", "thinking", "/v2/calls/1", "local", "completed", null, true, true,
      ],
      "callbacks change during a call, configuration from the next call on": [
        1, "Ann:Ann:one", "Bob:Ann:two", "Bob:Bob:three", "second", true,
      ],
      "a failed start is an error, and the next call clears it": ["error", "MICROPHONE_DENIED", true, null, "key", true],
      "blocked sound is an error until it plays, whatever brings that about": ["AUDIO_BLOCKED", true],
      "the SDK measures only for those who listen": [0, 0, "devices levels stats"],
      "options that cannot be used are named at mount and at start": ["INVALID_ARGUMENT", "INVALID_ARGUMENT", "idle", ""],
      "a device that cannot be used leaves the choice as it was": ["MICROPHONE_BUSY", "first"],
      "a hundred components leave nothing behind": [100, 0],
    });
  });
}

/** The first example of a file. */
const example = (file) => readFileSync(join(here, "..", file), "utf8").replaceAll(/^ \* ?/gm, "").match(/^```tsx\n([\s\S]*?)^```$/m)[1];

for (const [where, file, element, ended] of [
  ["guide", "docs/react.md", "<Guide />", "completedCall"],
  ["reference", "src/react.d.ts", '<Caller newCall={async () => (await (await window.fetch("/api/call")).json()).signedUrl} />', "Call"],
]) {
  test(`the component of the ${where} takes a double click for one call`, inBrowsers, async (t) => {
    const code = example(file);
    const script = `
      import { createRoot } from "react-dom/client";
      import { Backend, wait } from "../../sdk-wasm/tests/fake_backend.js";
      import { reporting, until } from "./call.mjs";
      reporting(async () => {
        const backend = new Backend();
        const { fetch } = window;
        let calls = 0;
        window.fetch = async (url, init) => {
          if (url !== "/api/call") return fetch(url, init);
          calls += 1;
          await wait(50);
          return new Response(JSON.stringify({ signedUrl: "wss://calls.invalid/session" }));
        };
        createRoot(document.body.appendChild(document.createElement("main"))).render(${element});
        const shows = async (wanted) => {
          if (await until(() => wanted(document.body.textContent))) return document.body.textContent;
          throw new Error("it stays: " + document.body.textContent);
        };
        await shows((text) => text.includes("Call"));
        for (let i = 0; i < 2; i += 1) {
          document.querySelector("button").click();
          await wait(1);
        }
        await shows((text) => text.includes("Hang up") && !text.includes("starting"));
        [...document.querySelectorAll("button")].find(({ textContent }) => textContent.startsWith("Hang up")).click();
        const text = await shows((text) => text.endsWith("Call"));
        // Fails for a rejection that nobody caught.
        backend.uninstall();
        return calls + " " + text;
      });
    `;
    const { outputFiles } = await build({
      stdin: { contents: code + script, resolveDir: here, loader: "tsx" },
      bundle: true,
      write: false,
      format: "esm",
      jsx: "automatic",
      alias: { "@colloquy/sdk/react": join(here, "..", "dist", "react.mjs") },
      define: { "process.env.NODE_ENV": '"development"' },
      logLevel: "warning",
    });
    const pages = { "/index.html": page("/page.js"), "/page.js": outputFiles[0].text };
    const report = await visit(t, files([join(here, "..", "dist")], { pages }));
    assert.equal(report, `1 ${ended}`);
  });
}
