// The console: documents of a knowledge base, from the drop of files to their deletion.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;
const SCRIPT = "<script>window.hostile = true</script>";
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="window.hostile = true">${SCRIPT}</svg>`;
/** A picture of one pixel, in base64. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const RTL = `مرحبا ${"طويل ".repeat(38)}`.trim();

const form = (fields) => {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  return form;
};

/** A knowledge base of its own with two folders, as the console shows it to a partner. */
class Base {
  constructor(stage) {
    this.stage = stage;
    this.name = `Guide ${stage.browserName} ${Date.now()}`;
    this.route = `${PARTNER}/${encodeURIComponent(this.name)}`;
  }

  async open(folder) {
    const { backend, browser } = this.stage;
    await backend.admin("POST", `/api/knowledgebases/${PARTNER}`, form({ name: this.name }));
    for (const name of ["handbook", "archive"]) await backend.admin("POST", `/api/folders/${this.route}`, form({ name }));
    const { api_key } = (await backend.admin("POST", `/api/keys/${PARTNER}`, { name: "documents" })).content;
    const page = new ConsolePage(browser, backend.url);
    await page.forget();
    await page.open();
    await page.signIn(api_key);
    await page.says("Overview");
    this.path = `p/${PARTNER}/knowledge/${encodeURIComponent(this.name)}`;
    await page.open(folder ? `${this.path}?folder=${folder}` : this.path);
    return page;
  }

  async list(query = "") {
    return (await this.stage.backend.admin("GET", `/api/document-list/${this.route}?${query}`)).content;
  }
}

/** Drops files onto the documents, each with its name and its text or its bytes in base64. */
const drop = (page, files) =>
  page.driver.executeScript((dropped) => {
    const data = new DataTransfer();
    for (const { name, text, base64 } of dropped) {
      data.items.add(new File([base64 ? Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0)) : text], name));
    }
    const target = document.querySelector(".documents");
    for (const type of ["dragover", "drop"]) target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
  }, files);

/** Names of the documents that are shown, in their order. */
const shown = (page) => page.driver.executeScript(() => [...document.querySelectorAll(".documents th.name a")].map((link) => link.textContent));

/** Waits until the list has so many documents. */
const counts = (page, words) =>
  until(`the list has ${words}`, async () => (await page.driver.executeScript("return document.querySelector('.documents caption strong')?.innerText")) === words);

/** Clicks the box with this label. */
const check = (page, label) =>
  until(`there is a box ${label}`, () =>
    page.driver.executeScript((wanted) => {
      const box = [...document.querySelectorAll("input")].find((input) => (input.ariaLabel ?? input.closest("label")?.innerText.trim()) === wanted);
      box?.click();
      return Boolean(box);
    }, label));

consoleScene("files that are dropped into the console become documents, which are sorted, filtered, moved, retried and deleted", {}, async (stage) => {
  const base = new Base(stage);
  const page = await base.open("handbook");
  await page.says("No documents in this folder");
  await accessible(page, "no documents", null);
  const files = Array.from({ length: 25 }, (_, place) => ({ name: `Page ${place + 10}.md`, text: `# Page ${place}\n\n${"It opens at ten.\n".repeat(place + 1)}` }));
  files.push(
    { name: "Copy.md", text: files[3].text },
    { name: `${HOSTILE}.txt`, text: `${HOSTILE} ${SCRIPT}` },
    { name: `${RTL}.txt`, text: "مرحبا" },
    { name: "broken.pdf", text: "%PDF-1.7\nnothing" },
    { name: "drawing.svg", text: SVG },
  );
  await drop(page, files);
  await page.says("30 files");
  await accessible(page, "adding documents", null);
  await page.click("Upload 30 files");
  await page.says("29 of 30 done, 1 failed, 1 duplicate");
  await page.says(`files of the type "svg" are not supported`);
  await accessible(page, "uploads", null);
  await page.click("Dismiss the uploads");
  await page.saysNoMore("29 of 30 done");

  // They become ready without a click.
  await page.driver.executeScript("document.querySelector('.choice').open = true");
  await check(page, "ready");
  await counts(page, "28 documents");
  await check(page, "ready");
  await check(page, "failed");
  await page.says("The document is damaged");
  assert.deepEqual(await shown(page), ["broken.pdf"]);
  await accessible(page, "failed documents", null);
  await page.click("Retry broken.pdf");
  await page.says("queued again");
  await page.says("The document is damaged");
  await page.click("Delete broken.pdf");
  await page.says("cannot be undone");
  await page.click("Delete");
  await page.says("No document matches");
  await page.click("Show all");
  await counts(page, "28 documents");
  assert.ok((await shown(page)).includes(`${HOSTILE}.txt`), "names are as they were");
  // The table fits the window of a small notebook, and its times are no tab stops.
  const window = page.driver.manage().window();
  const size = await window.getRect();
  await window.setRect({ width: 1280, height: 800 });
  const [wanted, there] = await page.driver.executeScript(() => {
    const { scrollWidth, clientWidth } = document.querySelector(".documents .scroll");
    return [scrollWidth, clientWidth];
  });
  assert.ok(wanted <= there, `the table: ${wanted} of ${there} pixels`);
  await window.setRect(size);
  assert.equal(await page.driver.executeScript("return [...document.querySelectorAll('time')].filter(({ tabIndex }) => tabIndex >= 0).length"), 0);

  await page.click("Size");
  const bySize = (await base.list("sort=size")).documents.map(({ name }) => name);
  await until("the largest come first", async () => (await shown(page)).join() === bySize.join());
  await page.click("Size");
  await until("the smallest come first", async () => (await shown(page))[0] === bySize.at(-1));
  assert.match(await page.driver.getCurrentUrl(), /doc-sort=size&doc-order=asc/);

  await page.enter("doc-q", "page 3");
  await counts(page, "5 documents");
  await check(page, "Select Page 30.md");
  await check(page, "Select Page 31.md");
  await page.says("2 selected");
  await accessible(page, "a selection", null);
  await page.click("Rewrite…");
  await page.says("No model for rewriting is configured");
  await page.click("Close");
  await page.press("Move…");
  await page.choose("folder", "archive");
  await page.press("Move");
  await counts(page, "3 documents");
  // The buttons of the selection are gone, and the focus is beside where they were.
  await page.focuses("Documents");
  assert.deepEqual((await base.list("folder=archive")).documents.map(({ name }) => name), ["Page 30.md", "Page 31.md"]);
  for (const [deleted, next] of [["Page 33.md", "Delete Page 34.md"], ["Page 34.md", "Delete Page 32.md"]]) {
    await page.press(`Delete ${deleted}`);
    await page.says("cannot be undone");
    await page.press("Delete");
    await until(`${deleted} is gone`, async () => !(await shown(page)).includes(deleted));
    await page.focuses(next);
  }
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("a document is read and edited in the console, and what others wrote meanwhile is not overwritten unasked", {}, async (stage) => {
  const base = new Base(stage);
  const page = await base.open();
  const add = async (name, content, options = { use_original_as_rewritten: "true" }) => {
    const file = new File([content], name);
    return (await stage.backend.admin("POST", `/api/documents/${base.route}`, form({ type: "file", folder: "handbook", file, ...options }))).content.id;
  };
  const text = await add(`${HOSTILE}.md`, `# Hours\n\nIt opens at ten.\n${HOSTILE}${SCRIPT}\n`);
  const html = await add("page.html", `<title>Page</title>${SCRIPT}<p>Hello</p>${SVG}`);
  const xml = await add("drawing.xml", SVG);
  const picture = await add("picture.png", Buffer.from(PICTURE, "base64"));
  await counts(page, "4 documents");
  await until("the text is ready", async () => (await base.list("state=ready")).total >= 2);
  await page.follow(`${base.path}/documents/${text}`);
  await page.says("It opens at ten.");
  await accessible(page, "a document", null);
  await page.click("Changes");
  await page.says("The texts are equal.");
  await page.click("Rewritten");
  await page.click("Edit");
  await page.write("It opens at nine.");
  await accessible(page, "an editor", null);
  // Arrow keys pass the tab with the editor, which leaves the focus with the tabs.
  await page.click("Digitized");
  await page.press("Digitized", Key.ARROW_RIGHT);
  await page.focuses("Rewritten");
  await page.editor();
  await page.driver.actions().sendKeys(Key.ARROW_RIGHT).perform();
  await page.focuses("Changes");
  // What is written survives a visit elsewhere, is listed there, and is not lost by signing out unasked.
  await page.click("Characters");
  await page.says("librarian");
  await page.click("Your session");
  await page.click("Sign out");
  await page.says("This is lost: 1 unsaved text.");
  await accessible(page, "a question before signing out", null);
  await page.click("Cancel");
  await page.click("1 unsaved text");
  await accessible(page, "unsaved texts", null);
  await page.driver.executeScript("document.querySelector('dialog[open] li a').click()");
  assert.equal(await page.written(), "It opens at nine.");
  const content = `/api/documents/${base.route}/${text}/content/rewritten`;
  await stage.backend.admin("PUT", content, form({ content: "It opens at eight." }));
  await page.click("Save");
  await page.says("has changed since you began");
  await page.driver.executeScript("document.querySelector('.conflict details').open = true");
  await page.says("It opens at eight.");
  await accessible(page, "a conflict", null);
  assert.equal((await stage.backend.admin("GET", content)).content.content, "It opens at eight.");
  await page.press("Overwrite with mine");
  await page.says("The final content is saved");
  await page.focuses("div");
  assert.equal(await page.driver.executeScript("return document.activeElement.id"), "tab-panel");
  await page.saysNoMore("1 unsaved text");
  assert.equal((await stage.backend.admin("GET", content)).content.content, "It opens at nine.");
  await page.click("Changes");
  await page.says("1 line added");
  await accessible(page, "changes", null);
  // Changes, chunks and history follow what others write.
  await stage.backend.admin("PUT", content, form({ content: "It opens at midnight." }));
  await page.says("It opens at midnight.");
  await page.click("Chunks");
  await page.says("Chunk 1,");
  await accessible(page, "chunks", null);
  await stage.backend.admin("PUT", content, form({ content: "It opens at noon." }));
  await page.says("It opens at noon.");
  await page.click("History");
  await page.says("Embedding");
  await page.says("No service was asked for this document.");
  await accessible(page, "a history", null);
  await page.click("Rename…");
  await page.enter("name", "Renamed");
  await page.click("Rename");
  await until("the heading has the new name", () => page.driver.executeScript("return document.querySelector('h1').innerText === 'Renamed'"));

  // A text that is too long to be shown can be downloaded.
  await page.driver.executeScript(() => {
    const { fetch } = window;
    const answer = { detail: "A content of more than 9 bytes can be downloaded only", code: "invalid_request", field: "type" };
    window.fetch = (resource, init) => {
      const isText = (resource.url ?? String(resource)).endsWith("/content/rewritten");
      return isText ? Promise.resolve(Response.json(answer, { status: 400 })) : fetch(resource, init);
    };
  });
  await page.click("Rewritten");
  await page.says("can be downloaded only");
  assert.ok((await page.text()).includes("Download") && !(await page.text()).includes("Try again"));
  await accessible(page, "a text that is too long", null);

  // Originals never run.
  for (const [id, words] of [[html, "<p>Hello</p>"], [xml, "window.hostile = true"]]) {
    await page.open(`${base.path}/documents/${id}?tab=original`);
    await page.says(words);
    assert.deepEqual(await page.violations(), []);
    assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  }
  await page.open(`${base.path}/documents/${picture}?tab=chunks`);
  await page.says("Not embedded yet");
  await page.open(`${base.path}/documents/${picture}?tab=original`);
  await until("the picture shows", () => page.driver.executeScript("return document.querySelector('img.original')?.naturalWidth === 1"));
  await accessible(page, "a picture", null);
  assert.deepEqual(await page.violations(), []);
  await page.click("Delete…");
  await page.click("Delete");
  await counts(page, "3 documents");
});

consoleScene("an upload whose answer is lost is not sent twice", { once: true }, async (stage) => {
  const base = new Base(stage);
  const page = await base.open("handbook");
  await page.says("No documents in this folder");
  // The server accepts the first two uploads, and the page does not hear of it.
  await page.driver.executeScript(() => {
    const { send } = XMLHttpRequest.prototype;
    window.uploads = 0;
    XMLHttpRequest.prototype.send = function (body) {
      if (body && ++window.uploads <= 2) this.onload = this.onerror;
      return send.call(this, body);
    };
  });
  await drop(page, ["one", "two", "three"].map((hour) => ({ name: `${hour}.md`, text: `It opens at ${hour}.` })));
  await page.click("Upload 3 files");
  await page.says("3 of 3 done");
  assert.equal(await page.driver.executeScript("return window.uploads"), 3);
  assert.deepEqual((await base.list()).documents.map(({ name }) => name), ["one.md", "three.md", "two.md"]);
});

consoleScene("documents of the console on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const base = new Base(stage);
  const page = await base.open();
  const fits = async (state) => {
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wanted <= there, `${state}: ${wanted} of ${there} pixels`);
  };
  await page.says("No documents yet");
  await page.click("Add documents");
  await check(page, "Pasted text");
  await page.enter("title", "W".repeat(190));
  await page.enter("pasted", "It opens at ten.");
  await fits("adding documents");
  await page.click("Add the text");
  await page.says("1 of 1 done");
  await counts(page, "1 document");
  await fits("documents");
  await accessible(page, "documents on a phone", null);
  const [{ id }] = (await base.list()).documents;
  await page.follow(`${base.path}/documents/${id}`);
  await page.says("It opens at ten.");
  await fits("a document");
  await page.click("Chunks");
  await page.says("Chunk 1,");
  await fits("chunks");
  await page.click("History");
  await page.says("Digitizing");
  await fits("a history");
});
