// Makes the README's pictures: the demo page in a call, on a desk and on a phone. It starts what it needs;
// `node pictures.mjs`.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

import { createCallAtBackend, customerServer } from "../../examples/server.mjs";
import { createCharacter } from "../../examples/prepare.mjs";
import { Backend, PARTNER, ROOT } from "./stage/backend.mjs";
import { openBrowser } from "./stage/browsers.mjs";
import { DemoPage } from "./stage/demo.mjs";
import { writeSpeech } from "./stage/speech.mjs";
import { sleep } from "./stage/waiting.mjs";

const PICTURES = {
  "demo.png": { windowSize: "1200,1000" },
  "phone.png": { phone: { width: 390, height: 790, pixelRatio: 2 }, dark: true },
};
const MAX_BYTES = 200_000;

/** A conversation up to the middle of its second answer. */
async function converse(page) {
  await page.open();
  await page.call();
  await page.says("bot", "its greeting");
  await page.says("user", "the recorded words");
  await page.shows("the answer", ({ lines, agent }) => agent !== "speaking" && lines.at(-1).originator === "bot", 30_000);
  await page.type("What is a signed URL?");
  await page.shows("the answer being spoken", ({ lines, agent }) => agent === "speaking" && lines.at(-1).originator === "bot");
  // The focus is at what was typed; without it no outline draws the eye. Then its first words are heard.
  await page.driver.executeScript("document.activeElement.blur(); scrollTo(0, 0)");
  await sleep(700);
  // A machine that is busy beside it conceals gaps in the sound.
  await page.shows("a good connection", ({ agent, quality }) => agent === "speaking" && quality?.startsWith("Good"));
}

async function picture(name, options, url) {
  const browser = await openBrowser("chromium", options);
  try {
    await converse(new DemoPage(browser, url));
    const png = Buffer.from(await browser.driver.takeScreenshot(), "base64");
    if (png.length > MAX_BYTES) throw new Error(`${name} has ${png.length} bytes, more than ${MAX_BYTES}`);
    writeFileSync(path.join(ROOT, "examples/pictures", name), png);
    console.log(`${name}: ${png.length} bytes`);
  } finally {
    await browser.close();
  }
}

const folder = mkdtempSync(path.join(tmpdir(), "colloquy-pictures-"));
const microphoneFile = writeSpeech(path.join(folder, "microphone.wav"), { silenceBefore: 6, silenceAfter: 60 });
const backend = await Backend.start();
const server = customerServer({
  backendUrl: backend.url,
  apiKey: backend.apiKey,
  publishableKey: "cqp_shown_in_no_picture",
  character: `${PARTNER}/guide`,
  createCall: createCallAtBackend,
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
try {
  const character = JSON.parse(await readFile(path.join(ROOT, "examples/character.json"), "utf8"));
  // Its own documents are enough for a picture; its knowledge base is the demo's.
  delete character.parameters.rag_index_required;
  await createCharacter(backend.admin, PARTNER, character);
  const url = `http://localhost:${server.address().port}/`;
  for (const [name, options] of Object.entries(PICTURES)) await picture(name, { ...options, microphoneFile }, url);
} finally {
  server.closeAllConnections();
  server.close();
  await backend.close();
  rmSync(folder, { recursive: true, force: true });
}
