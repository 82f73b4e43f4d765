// The hook with the real React, in its development build and under StrictMode, and on a server.

import assert from "node:assert/strict";
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
