// Asks the demo's character something that only its knowledge base says, in text and in a call, and prints what both sides said, what was looked
// up, and the delays. The call goes through a demo page that runs already, with a recording for the microphone.
// `examples/run --check` starts it. It fails unless the visitor's words are understood, a reply is heard, and the question is answered
// from the knowledge base both times.
//
//   node check.mjs http://localhost:3000/ http://localhost:8080 FILE-WITH-A-KEY-FOR-TEXT

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
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

/** What only the knowledge base says, and where. */
const QUESTION = "How long may a call last?";
const ANSWER = /four hours/i;
const SOURCE = "questions.html";

/** Asks in text, as a customer's server would. */
async function ask(backend, key) {
  const send = async (route, body) => {
    const answer = await fetch(new URL(route, backend), {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: body && JSON.stringify(body),
    });
    const content = await answer.json();
    if (!answer.ok) throw new Error(`${route}: ${answer.status} ${JSON.stringify(content)}`);
    return content;
  };
  const { data: [model] } = await send("/v3/models");
  const { output } = await send("/v3/responses", {
    model: model.id,
    input: QUESTION,
    metadata: { svc: { character: "repo:demo/guide" } },
  });
  const search = output.find(({ type }) => type === "file_search_call");
  const sources = [...new Set(search.results.map(({ filename }) => filename))];
  const message = output.find(({ type }) => type === "message");
  const answer = message.content.map(({ text }) => text).join("");
  if (!sources.includes(SOURCE)) throw new Error(`${SOURCE} was not found, but ${sources}`);
  if (!ANSWER.test(answer)) throw new Error(`not answered from the knowledge base: ${answer}`);
  return { answer, sources };
}

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
  await page.type(QUESTION);
  await page.says("bot", "what the knowledge base says", (text) => ANSWER.test(text), PATIENCE_MS);
  const { lines, sources } = await page.shows("what was looked up", ({ sources }) => sources?.includes(SOURCE), PATIENCE_MS);
  const at = Object.fromEntries(shown.callbacks.map(({ name, atMs }) => [name, atMs]));
  await page.click("hang-up");
  await page.ended();
  return { lines, sources, connectMs: at.onConnected - at.onCallStarting, replyMs: reply.first - spoken.last };
}

const folder = mkdtempSync(path.join(tmpdir(), "colloquy-check-"));
const microphoneFile = writeSpeech(path.join(folder, "microphone.wav"), {
  silenceBefore: GREETING_SECONDS,
  silenceAfter: 30,
});
const browser = await openBrowser("chromium", { microphoneFile });
const [, , site, backend, keyFile] = process.argv;
const page = new DemoPage(browser, site);
try {
  const text = await ask(backend, readFileSync(keyFile, "utf8").trim());
  console.log(`asked in text: ${QUESTION}\nanswered: ${text.answer}\nlooked up: ${text.sources.join(", ")}`);
  const { lines, sources, connectMs, replyMs } = await place(page);
  for (const { role, text } of lines) console.log(`${role}: ${text}`);
  console.log(`looked up: ${sources}`);
  console.log(`connected ${Math.round(connectMs)} ms after the microphone was there`);
  console.log(`first reply heard ${Math.round(replyMs)} ms after the visitor stopped speaking`);
} catch (error) {
  console.error(`the check failed: ${error.message}\n${await page.report()}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
