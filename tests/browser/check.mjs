// Places one call through a demo page that runs already, with a recording for the microphone, and prints how it went.
// `examples/run --check` starts it. It fails unless the visitor's words are understood and a reply is heard.
//
//   node check.mjs http://localhost:3000/

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

import { openBrowser } from "./stage/browsers.mjs";
import { DemoPage } from "./stage/demo.mjs";
import { understood, writeSpeech } from "./stage/speech.mjs";
import { until } from "./stage/waiting.mjs";

/** The recording begins when the microphone opens; this is about what the character's greeting takes. */
const GREETING_SECONDS = 6;

/** How long the answer may take to be heard after the visitor spoke. */
const PATIENCE_MS = 15_000;

async function place(page) {
  await page.open();
  await page.call();
  await page.shows("the visitor's words in the transcript", ({ lines }) =>
    lines.some(({ originator, final, text }) => originator === "user" && final && understood(text)),
    GREETING_SECONDS * 1000 + PATIENCE_MS,
  );
  // The first sample is after the page opened, the words are the only thing said.
  const spoken = await page.ears.audible("said");
  if (!spoken) throw new Error("the microphone was silent");
  const reply = await until("an audible reply", () => page.ears.audible("heard", spoken.last), { withinMs: PATIENCE_MS });
  const shown = await page.shows("the reply in the transcript", ({ lines }) => {
    const question = lines.findIndex(({ originator }) => originator === "user");
    return lines.slice(question).some(({ originator, final }) => originator === "bot" && final);
  }, PATIENCE_MS);
  const at = Object.fromEntries(shown.callbacks.map(({ name, atMs }) => [name, atMs]));
  await page.click("hang-up");
  await page.ended();
  return { lines: shown.lines, connectMs: at.onConnected - at.onCallStarting, replyMs: reply.first - spoken.last };
}

const folder = mkdtempSync(path.join(tmpdir(), "colloquy-check-"));
const microphoneFile = writeSpeech(path.join(folder, "microphone.wav"), {
  silenceBefore: GREETING_SECONDS,
  silenceAfter: 30,
});
const browser = await openBrowser("chromium", { microphoneFile });
const page = new DemoPage(browser, process.argv[2]);
try {
  const { lines, connectMs, replyMs } = await place(page);
  for (const { role, text } of lines) console.log(`${role}: ${text}`);
  console.log(`connected ${Math.round(connectMs)} ms after the microphone was there`);
  console.log(`first reply heard ${Math.round(replyMs)} ms after the visitor stopped speaking`);
} catch (error) {
  console.error(`the check failed: ${error.message}\n${await page.report()}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
