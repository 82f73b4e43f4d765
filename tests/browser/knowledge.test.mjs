// Knowledge in the console: bases, folders, budgets, channels.

import assert from "node:assert/strict";
import { createServer } from "node:http";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;

/** Opens the console, signed in with a new key of the partner. */
async function signedIn(stage, rest, key = {}) {
  const page = new ConsolePage(stage.browser, stage.backend.url);
  await page.forget();
  await page.open(rest);
  const { content } = await stage.backend.admin("POST", `/api/keys/${PARTNER}`, { name: "knowledge", ...key });
  await page.signIn(content.api_key);
  return page;
}

function form(fields) {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  return made;
}

const createBase = ({ backend }, name, more) => backend.admin("POST", `/api/knowledgebases/${PARTNER}`, form({ name, ...more }));
const createFolder = ({ backend }, base, name) => backend.admin("POST", `/api/folders/${PARTNER}/${encodeURIComponent(base)}`, form({ name }));

/** Adds a document of so many characters, which is found as it is. */
function addDocument({ backend }, base, folder, name, characters) {
  const file = new File(["word ".repeat(characters / 5)], `${name}.txt`);
  const fields = { type: "file", folder, file, use_original_as_rewritten: "true" };
  return backend.admin("POST", `/api/documents/${PARTNER}/${encodeURIComponent(base)}`, form(fields));
}

/** Waits until the address ends with this. */
const addressed = (page, end) => until(`the address ends with ${end}`, async () => (await page.driver.getCurrentUrl()).endsWith(end));

/** Returns the texts of elements. */
const texts = (page, selector) =>
  page.driver.executeScript((css) => [...document.querySelectorAll(css)].map((element) => element.innerText.trim()), selector);

/** Fails if the page ran a script of a name, or tried to. */
async function unharmed(page) {
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
}

consoleScene("a budget blocks documents, and a raise wakes them", {}, async (stage) => {
  const base = `blocked ${HOSTILE} ${stage.browserName}`;
  const page = await signedIn(stage);
  await page.click("Knowledge");
  await page.click("Create a knowledge base");
  await page.enter("name", base);
  await page.enter("expert_name", HOSTILE);
  await page.enter("character_limit", "1000");
  await page.click("Create");
  await page.says(`Knowledge base ${base}`);
  await page.says("No folders yet.");
  await page.click("New");
  await page.enter("name", HOSTILE);
  await page.click("Create");
  await addressed(page, `?folder=${new URLSearchParams({ x: HOSTILE }).toString().slice(2)}`);

  for (const name of ["first", "second", "third"]) await addDocument(stage, base, HOSTILE, name, 800);
  await page.says("2 documents wait for the budget");
  await page.says("800 of 1,000");

  await page.click("Change the limits");
  await page.enter("character_limit", "500");
  await page.says("no document goes on at once, and 2 still wait");
  await page.click("Change");
  await page.says("Blocked. The texts have as many characters as the limit allows.");
  await accessible(page, "a budget that blocks", null);
  await page.click("Undo");
  await page.saysNoMore("Blocked.");

  await page.click("Change the limits");
  await page.enter("character_limit", "many");
  await page.says("Type whole numbers");
  await page.enter("character_limit", "1600");
  await page.says("1 document goes on at once, and 1 still waits");
  await page.enter("character_limit", "5000");
  await page.says("2 documents go on at once.");
  await accessible(page, "changing limits", null);
  await page.click("Change");
  await page.saysNoMore("wait for the budget");
  await page.says("2,400 of 5,000");
  // What somebody else has set since is not undone.
  const limits = `/api/knowledgebases/${PARTNER}/${encodeURIComponent(base)}/limits`;
  await stage.backend.admin("PATCH", limits, { character_limit: 6000 });
  await page.says("2,400 of 6,000");
  await page.click("Undo");
  await page.says("Nothing was undone");
  assert.equal((await stage.backend.admin("GET", limits)).content.limits.character_limit, 6000);
  await unharmed(page);
});

consoleScene("knowledge bases are sorted and filtered by the server, and deleted", { once: true }, async (stage) => {
  const { browserName } = stage;
  const name = (end) => `${browserName} list ${end}`;
  for (const end of ["small", "large", "empty"]) await createBase(stage, name(end), { token_limit: "5000" });
  for (const [end, size] of [["small", 100], ["large", 2000]]) {
    await createFolder(stage, name(end), "folder");
    await addDocument(stage, name(end), "folder", "document", size);
  }
  const page = await signedIn(stage);
  await page.click("Knowledge");
  await page.says(name("empty"));
  await page.enter("q", name(""));
  await addressed(page, `/knowledge?q=${browserName}+list`);
  const inOrder = (...ends) => until(`the order is ${ends}`, async () => String(await texts(page, "tbody th")) === String(ends.map(name)));
  await inOrder("empty", "large", "small");
  await page.says("All 3 matches");
  await page.choose("sort", "Size, largest first");
  await addressed(page, `?q=${browserName}+list&sort=size`);
  await inOrder("large", "small", "empty");
  await accessible(page, "knowledge bases", null);

  await page.click("Create a knowledge base");
  await accessible(page, "creating a knowledge base", null);
  await page.click("Cancel");
  await page.click(`Delete ${name("empty")}`);
  await page.says("0 documents are deleted with it");
  await page.click("Delete");
  await page.says("is deleted");
  await inOrder("large", "small");
  await page.driver.navigate().refresh();
  await inOrder("large", "small");
  await page.enter("q", "no such base");
  await page.says("No knowledge base matches");
  await page.click("Show all");
  await page.says(name("small"));
});

consoleScene("folders and channels of a knowledge base", { once: true }, async (stage) => {
  const base = `folders ${stage.browserName}`;
  await createBase(stage, base);
  for (const folder of ["letters", "reports"]) await createFolder(stage, base, folder);
  await addDocument(stage, base, "reports", "report", 500);
  const page = await signedIn(stage, `p/${PARTNER}/knowledge/${encodeURIComponent(base)}`);
  const folders = () => texts(page, ".folders li a");
  const shown = (...names) => until(`the folders are ${names}`, async () => String(await folders()) === String(["All documents", ...names]));
  await shown("letters", "reports");
  await page.choose("folder-sort", "Size, largest first");
  await shown("reports", "letters");
  await page.enter("folder-q", "lett");
  await shown("letters");
  await page.click("letters");
  await addressed(page, "?folder-sort=size&folder-q=lett&folder=letters");
  await page.click("Delete the folder");
  await page.says("It has no documents.");
  await page.click("Delete");
  await page.says("No folder matches.");
  await page.enter("folder-q", "\n");
  await shown("reports");

  await page.click("New");
  await page.choose("type", "are the videos of a channel");
  await page.enter("name", "zoo");
  await page.enter("channel_url", "the zoo");
  await page.click("Create");
  await page.says("must be a handle");
  await page.enter("channel_url", "@zoo");
  await page.click("Create");
  // Channels need a program that these servers lack.
  await page.says("yt-dlp");
  await accessible(page, "a channel", null);
  await page.click("Pause");
  await page.says("paused");
  await page.click("Undo");
  await page.says("Scan now");
  await page.click("Scan now");
  await page.says("The channel is scanned soon");

  const spend = await page.driver.executeScript(() => {
    const found = document.querySelector(".folders .explained");
    found.focus();
    return found.innerText;
  });
  assert.match(spend, /^—/);
  await page.says("No request with a price was sent");
  await page.open(`p/${PARTNER}/knowledge/${encodeURIComponent(base)}?folder=letters`);
  await page.says("There is no folder letters.");
});

consoleScene("a key without the scope sees no knowledge", { once: true }, async (stage) => {
  const page = await signedIn(stage, `p/${PARTNER}/knowledge`, { scopes: ["calls"] });
  await page.says("Page not found");
  assert.ok(!(await texts(page, "nav a")).includes("Knowledge"));
});

consoleScene("knowledge on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const base = `phone ${stage.browserName} ${"long".repeat(40)}`;
  await createBase(stage, base, { character_limit: "100", expert_name: "x".repeat(200) });
  await createFolder(stage, base, "y".repeat(200));
  await addDocument(stage, base, "y".repeat(200), "document", 500);
  const page = await signedIn(stage, `p/${PARTNER}/knowledge?q=${stage.browserName}`);
  const fits = async (state) => {
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wanted <= there, `${state}: ${wanted} of ${there} pixels`);
  };
  await page.says("All ");
  await fits("knowledge bases");
  await page.follow(`p/${PARTNER}/knowledge/${encodeURIComponent(base)}`);
  await page.says("1 document waits for the budget");
  await fits("a knowledge base");
  await accessible(page, "a knowledge base on a phone", null);
  await page.click("y".repeat(200));
  await page.says("Delete the folder");
  await fits("a folder");
  await page.click("Change the limits");
  await page.says("1 still waits");
  await fits("changing limits");
  await page.click("Cancel");
  await page.click("Delete the base");
  await page.click("Delete");
  await page.says("is deleted");
  await fits("a notice with a long name");
});

/** An embedder that hangs up, so that nobody knows what a request cost. */
const embedder = createServer((request) => request.destroy());
await new Promise((resolve) => embedder.listen(0, "127.0.0.1", resolve));
embedder.unref();

const WITH_EMBEDDER = {
  COLLOQUY_EMBEDDER_BASE_URL: `http://127.0.0.1:${embedder.address().port}/v1`,
  COLLOQUY_EMBEDDER_API_KEY: "none",
  COLLOQUY_EMBEDDER_MODEL: "vectors",
  COLLOQUY_EMBEDDER_INPUT_USD: "0.1",
};

consoleScene("an administrator decides about requests of unknown outcome", { once: true, backend: WITH_EMBEDDER }, async (stage) => {
  await createBase(stage, "unknown", { dollar_limit_usd: "1" });
  await createFolder(stage, "unknown", "folder");
  await addDocument(stage, "unknown", "folder", "document", 500);
  const { content } = await stage.backend.admin("POST", "/api/console/links", {});
  const page = new ConsolePage(stage.browser, stage.backend.url);
  await page.forget();
  await page.open(`p/${PARTNER}/knowledge/unknown${new URL(content.url).hash}`);
  await page.click("Sign in");
  await page.says("the outcome of some requests is not known");
  await page.says("1 of unknown outcome");
  await page.click("Decide");
  await page.click("Decide");
  await page.says("The requests count as their upper bound");
  await page.saysNoMore("Nothing was decided yet.");
  await accessible(page, "a decided request", null);
});
