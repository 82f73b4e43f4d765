// Makes the pictures of the documents: the demo page in a call, on a desk and on a phone, and the views of the console, light and dark. Starts what
// it needs; `node pictures.mjs [demo] [console]`.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

import { createCallAtBackend, customerServer } from "../../examples/server.mjs";
import { createCharacter } from "../../examples/prepare.mjs";
import { Backend, PARTNER, ROOT } from "./stage/backend.mjs";
import { openBrowser } from "./stage/browsers.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { DemoPage } from "./stage/demo.mjs";
import { writeSpeech } from "./stage/speech.mjs";
import { sleep, until } from "./stage/waiting.mjs";

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

/** Stores what a browser shows. */
async function keep(name, browser) {
  const png = Buffer.from(await browser.driver.takeScreenshot(), "base64");
  if (png.length > MAX_BYTES) throw new Error(`${name} has ${png.length} bytes, more than ${MAX_BYTES}`);
  writeFileSync(path.join(ROOT, "examples/pictures", name), png);
  console.log(`${name}: ${png.length} bytes`);
}

async function picture(name, options, url) {
  const browser = await openBrowser("chromium", options);
  try {
    await converse(new DemoPage(browser, url));
    await keep(name, browser);
  } finally {
    await browser.close();
  }
}

const form = (fields) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
};

/** The documents of the pictured knowledge base, by folder. */
const DOCUMENTS = {
  exhibits: ["The blue whale", "Amber and its insects", "Meteorites", "The herbarium", "Masks of the South Seas"],
  visit: ["Opening hours", "Tickets and discounts", "Arrival", "Wheelchairs and strollers"],
};
const PARAGRAPH = "The hall is open from ten to six, and on Thursdays until nine. Guided tours start at the entrance every hour.";

/** Fills a knowledge base, and waits until its documents are ready. */
async function fillBase(backend, base) {
  const route = `${PARTNER}/${base}`;
  await backend.admin("POST", `/api/knowledgebases/${PARTNER}`, form({ name: base }));
  await backend.admin("PATCH", `/api/knowledgebases/${route}/limits`, { character_limit: 20_000 });
  for (const [folder, titles] of Object.entries(DOCUMENTS)) {
    await backend.admin("POST", `/api/folders/${route}`, form({ name: folder }));
    for (const [place, title] of titles.entries()) {
      const text = `# ${title}\n\n${Array(3 + 2 * place).fill(PARAGRAPH).join("\n\n")}\n`;
      const file = new File([text], `${title}.md`, { type: "text/markdown" });
      await backend.admin("POST", `/api/documents/${route}`, form({ type: "file", folder, use_original_as_rewritten: "true", file }));
    }
  }
  return until("the documents are ready", async () => {
    const { content } = await backend.admin("GET", `/api/document-list/${route}`);
    return content.documents.every(({ state }) => state === "ready") && content.documents;
  });
}

/** Has quotas generate texts. */
async function fillUsage(backend) {
  for (const [name, count] of [["Shop", 6], ["City guide", 3]]) {
    const { api_key: key } = (await backend.admin("POST", `/api/quotas/${PARTNER}`, { name, kinds: ["text"], limits: { tokens: 20_000 } })).content;
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = JSON.stringify({ model: "builtin/extractive", messages: [{ role: "user", content: "When do you open?" }] });
    for (let one = 0; one < count; one += 1) {
      const answer = await fetch(`${backend.url}/v3/chat/completions`, { method: "POST", headers, body });
      if (!answer.ok) throw new Error(`a quota cannot generate text: ${await answer.text()}`);
    }
  }
}

/** Takes pictures of the views of the console. */
async function pictureConsole(backend) {
  const documents = await fillBase(backend, "museum");
  for (const name of ["city-guide", "shop"]) await backend.admin("POST", `/api/knowledgebases/${PARTNER}`, form({ name }));
  for (let count = 0; count < 6; count += 1) {
    await backend.admin("POST", "/v2/calls", { character: `repo:${PARTNER}/${["greeter", "librarian"][count % 2]}`, call_time_limit_seconds: 600 });
  }
  await fillUsage(backend);
  const { api_key } = (await backend.admin("POST", `/api/keys/${PARTNER}`, { name: "pictures" })).content;
  const base = `p/${PARTNER}/knowledge/museum`;
  const views = {
    overview: ["", "Overview"],
    knowledge: [`p/${PARTNER}/knowledge`, "city-guide"],
    base: [base, "Meteorites"],
    document: [`${base}/documents/${documents[0].id}`, documents[0].name],
    characters: [`p/${PARTNER}/characters`, "librarian"],
    calls: [`p/${PARTNER}/calls`, "librarian"],
    retrieval: [`${base}/retrieval?q=${encodeURIComponent("When is the museum open late?")}`, "Thursdays"],
    character: [`p/${PARTNER}/characters/librarian/edit`, "Personality"],
    usage: [`p/${PARTNER}/usage`, "Chart of"],
    audit: [`p/${PARTNER}/audit`, "museum"],
  };
  await pictureViews(backend, api_key, views);
  // Administrators alone see the system.
  await pictureViews(backend, backend.adminKey, { system: ["system", "Heartbeat"] });
}

/** Takes pictures of views of the console as the owner of a key sees them. */
async function pictureViews(backend, key, views) {
  const browser = await openBrowser("chromium", { windowSize: "1280,860" });
  try {
    const page = new ConsolePage(browser, backend.url);
    await page.open();
    await page.signIn(key);
    await page.says("Overview");
    for (const scheme of ["light", "dark"]) {
      await browser.prefer(scheme);
      for (const [view, [at, words]] of Object.entries(views)) {
        await page.open(at);
        await page.says(words);
        await page.saysNoMore("Loading…");
        await keep(`console-${view}-${scheme}.png`, browser);
      }
    }
  } finally {
    await browser.close();
  }
}

const wanted = process.argv.slice(2);
const wants = (what) => wanted.length === 0 || wanted.includes(what);
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
  if (wants("demo")) for (const [name, options] of Object.entries(PICTURES)) await picture(name, { ...options, microphoneFile }, url);
  if (wants("console")) await pictureConsole(backend);
} finally {
  server.closeAllConnections();
  server.close();
  await backend.close();
  rmSync(folder, { recursive: true, force: true });
}
