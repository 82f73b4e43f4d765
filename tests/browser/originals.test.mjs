// The console: one document, with the pages of its file, the words of its recording, and an editor with a preview.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { repeatedSpeech, understoodInPart } from "./stage/speech.mjs";
import { consoleScene, scene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const form = (fields) => {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  return made;
};

/** A page of the console that is signed in, and a knowledge base of its own to which it adds documents. */
async function opened({ backend, browser, browserName }) {
  const name = `Originals ${browserName} ${Date.now()}`;
  const route = `${PARTNER}/${encodeURIComponent(name)}`;
  await backend.admin("POST", `/api/knowledgebases/${PARTNER}`, form({ name }));
  await backend.admin("POST", `/api/folders/${route}`, form({ name: "files" }));
  const { api_key } = (await backend.admin("POST", `/api/keys/${PARTNER}`, { name: "originals" })).content;
  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open();
  await page.signIn(api_key);
  await page.says("Overview");
  const add = async (file) => {
    const fields = form({ type: "file", folder: "files", file, use_original_as_rewritten: "true" });
    const { id } = (await backend.admin("POST", `/api/documents/${route}`, fields)).content;
    return { id, path: `p/${PARTNER}/knowledge/${encodeURIComponent(name)}/documents/${id}` };
  };
  return { page, route, add };
}

/** A PDF file with a line of text on each page. `trailer` is added to its trailer. */
function pdf(lines, trailer = "") {
  const kids = lines.map((_, place) => `${4 + 2 * place} 0 R`).join(" ");
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >> >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${lines.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...lines.flatMap((line, place) => {
      const content = `BT /F1 24 Tf 72 700 Td (${line}) Tj ET 72 600 200 50 re f`;
      const page = `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents ${5 + 2 * place} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`;
      return [page, `<< /Length ${content.length} >>\nstream\n${content}\nendstream`];
    }),
  ];
  let file = "%PDF-1.4\n";
  const places = objects.map((object, place) => {
    const at = file.length;
    file += `${place + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, "0")} 00000 n \n`;
  });
  const table = file.length;
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join("")}`;
  return `${file}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${table}\n%%EOF\n`;
}

/** The pages that are drawn, by their labels, with the texts of their text layers and the number of pixels that are not white. */
const drawn = (page) =>
  page.driver.executeScript(() =>
    [...document.querySelectorAll(".pdf-page:has(canvas)")].map((one) => {
      const canvas = one.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let dark = 0;
      for (let at = 0; at < data.length; at += 4) if (data[at] < 128 && data[at + 3] > 0) dark += 1;
      return { label: one.getAttribute("aria-label"), text: one.querySelector(".pdf-text").textContent, dark, width: one.offsetWidth };
    }),
  );

consoleScene("the pages of a PDF file are shown in the console as they come into sight", {}, async (stage) => {
  const { page, add } = await opened(stage);
  const lines = Array.from({ length: 40 }, (_, place) => `The hours of day ${place + 1}`);
  const { path } = await add(new File([pdf(lines)], "hours.pdf"));
  await page.open(`${path}?tab=original`);
  const first = await until("the first page is drawn", async () => (await drawn(page)).find(({ label }) => label === "Page 1"));
  assert.equal(first.text, "The hours of day 1");
  assert.ok(first.dark > 5_000, `dark pixels: ${first.dark}`);
  assert.ok((await drawn(page)).length <= 8);
  await accessible(page, "the pages of a file", null);
  // By its number, by keys, and larger.
  await page.driver.executeScript(() => {
    const field = document.querySelector(".pdf-bar input");
    field.value = "30";
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await until("page 30 is drawn", async () => (await drawn(page)).some(({ label, text }) => label === "Page 30" && text === "The hours of day 30"));
  await until("page 1 is gone", async () => !(await drawn(page)).some(({ label }) => label === "Page 1"));
  await page.driver.executeScript("document.querySelector('.pdf-pages').focus()");
  await page.driver.actions().sendKeys("n").perform();
  await until("page 31 is shown", () => page.driver.executeScript("return document.querySelector('.pdf-bar input').value === '31'"));
  await page.press("Zoom in");
  await until("pages are larger", async () => (await drawn(page)).some(({ label, width }) => label === "Page 31" && width > first.width));
  await page.driver.executeScript("document.querySelector('.pdf-pages').focus()");
  await page.driver.actions().sendKeys("0").perform();
  await until("pages fit again", async () => (await drawn(page)).some(({ label, width }) => label === "Page 31" && width === first.width));
  await page.driver.actions().sendKeys(Key.HOME).perform();
  await until("page 1 is drawn again", async () => (await drawn(page)).some(({ label }) => label === "Page 1"));

  const secret = "0".repeat(64);
  const locked = pdf(["Secret"], `/Encrypt << /Filter /Standard /V 1 /R 2 /O <${secret}> /U <${secret}> /P -4 >> /ID [<00> <00>]`);
  for (const [content, words] of [[locked, "protected by a password"], ["%PDF-1.4 and no more", "damaged or no PDF file"]]) {
    const { path: refused } = await add(new File([content], "refused.pdf"));
    await page.open(`${refused}?tab=original`);
    await page.says(words);
    assert.ok((await page.text()).includes("Download"));
    if (content !== locked) continue;
    await page.driver.executeScript(() => {
      const field = document.querySelector(".pdf-password input");
      field.value = "guess";
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.form.requestSubmit();
    });
    await page.says("The password is wrong.");
  }
  assert.deepEqual(await page.violations(), []);
});

consoleScene("a text is edited in the console with a preview in which nothing runs", {}, async (stage) => {
  const { page, route, add } = await opened(stage);
  const { id, path } = await add(new File(["# Hours\n\nIt opens at ten.\n"], "hours.md"));
  await until("the text is final", async () => (await stage.backend.admin("GET", `/api/document/${route}/${id}`)).content.file_rewritten);
  await page.open(`${path}?tab=rewritten`);
  await page.click("Edit");
  await page.editor();
  await page.click("Preview");
  const shown = (selector) => page.driver.executeScript((wanted) => [...document.querySelectorAll(`.preview ${wanted}`)].map((one) => one.textContent), selector);
  await until("the heading is previewed", async () => (await shown("h3")).includes("Hours"));
  const hostile = [
    `<img src=x onerror="window.hostile = true">`, `<script>window.hostile = true</script>`, `[one](javascript:window.hostile=true)`,
    `![cat](https://example.com/cat.png)`, `**bold** [two](https://example.com/)`,
  ];
  await page.write(hostile.join(" and "));
  await until("the text is previewed", async () => (await shown("strong")).includes("bold"));
  assert.deepEqual(await shown("a"), ["two"]);
  assert.deepEqual(await shown(":is(img, script)"), []);
  const [text] = await shown(".markdown");
  for (const part of [hostile[0], hostile[1], "Image: cat"]) assert.ok(text.includes(part), text);
  const link = await page.driver.executeScript("const { href, rel } = document.querySelector('.preview a'); return { href, rel }");
  assert.equal(link.href, "https://example.com/");
  assert.ok(link.rel.includes("noreferrer") && link.rel.includes("noopener"));
  await accessible(page, "an editor with its preview", null);
  // The keyboard leaves the editor.
  await page.driver.executeScript((field) => field.focus(), await page.editor());
  await page.driver.actions().sendKeys(Key.ESCAPE, Key.TAB).perform();
  await until("the focus is behind the editor", () => page.driver.executeScript("return !document.activeElement.matches('.text-editor, body')"));
  await page.click("Save");
  await page.says("The final content is saved");
  const content = (await stage.backend.admin("GET", `/api/documents/${route}/${id}/content/rewritten`)).content.content;
  assert.equal(content, hostile.join(" and "));
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("a text of millions of characters is edited in the console", {}, async (stage) => {
  const { page, route, add } = await opened(stage);
  const long = Array.from({ length: 60_000 }, (_, place) => `Line ${place} of a long text that is edited.\n`).join("");
  const { id, path } = await add(new File([long], "long.md"));
  await until("the text is final", async () => (await stage.backend.admin("GET", `/api/document/${route}/${id}`)).content.file_rewritten);
  await page.open(`${path}?tab=rewritten`);
  await page.click("Edit");
  await page.editor();
  await page.click("Preview");
  await page.driver.executeScript((field) => field.focus(), await page.editor());
  await page.driver.actions().sendKeys("Here ").perform();
  await until("the text is there", async () => (await page.written()).startsWith("Here Line 0"));
  await page.says("where the cursor is");
  await page.click("Save");
  await page.says("The final content is saved");
  const { content } = (await stage.backend.admin("GET", `/api/documents/${route}/${id}/content/rewritten`)).content;
  assert.equal(content, `Here ${long}`);
});

scene("the words of a recording follow its sound in the console", { calm: true, models: true }, async (stage) => {
  const { page, route, add } = await opened(stage);
  const { id, path } = await add(new File([repeatedSpeech(10)], "orders.wav"));
  const segments = async () => (await stage.backend.admin("GET", `/api/document-transcript/${route}/${id}`)).content.segments;
  await until("the recording is heard", async () => (await segments()).length > 1 && (await stage.backend.admin("GET", `/api/document/${route}/${id}`)).content.file_digitized, {
    withinMs: 60_000,
  });
  const heard = await segments();
  assert.ok(heard.every(({ text }) => understoodInPart(text)), JSON.stringify(heard));
  await page.open(`${path}?tab=original`);
  const current = () =>
    page.driver.executeScript(() => [...document.querySelectorAll(".segments-said button")].findIndex((one) => one.getAttribute("aria-current") === "true"));
  await until("the words are shown", () => page.driver.executeScript((count) => document.querySelectorAll(".segments-said button").length === count, heard.length));
  await accessible(page, "a recording", null);
  await until("the recording can be played", () => page.driver.executeScript("return document.querySelector('audio')?.readyState > 0"));
  await page.driver.executeScript("const audio = document.querySelector('audio'); audio.muted = true; document.querySelectorAll('.segments-said button')[1].click()");
  await until("the second segment is marked", async () => (await current()) === 1);
  const at = await page.driver.executeScript("return document.querySelector('audio').currentTime * 1000");
  assert.ok(at >= heard[1].begin_ms - 50, `${at} of ${JSON.stringify(heard[1])}`);
  // The mark follows the sound by itself.
  await page.driver.executeScript((seconds) => (document.querySelector("audio").currentTime = seconds), heard[1].end_ms / 1_000 - 0.3);
  if (heard.length > 2) await until("the third segment is marked", async () => (await current()) === 2);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("originals and the editor of the console on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const { page, route, add } = await opened(stage);
  const fits = async (state) => {
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wanted <= there, `${state}: ${wanted} of ${there} pixels`);
  };
  const { path: file } = await add(new File([pdf(["The hours of the day"])], "hours.pdf"));
  await page.open(`${file}?tab=original`);
  await until("the page is drawn", async () => (await drawn(page)).length === 1);
  await fits("a page of a file");
  await accessible(page, "a page of a file on a phone", null);
  const { id, path } = await add(new File([`# Hours\n\n| day | hours |\n|---|---|\n| Monday | ${"ten ".repeat(40)} |\n\n${"W".repeat(300)}\n`], "hours.md"));
  await until("the text is final", async () => (await stage.backend.admin("GET", `/api/document/${route}/${id}`)).content.file_rewritten);
  await page.open(`${path}?tab=rewritten`);
  await page.click("Edit");
  await page.editor();
  await page.click("Preview");
  await until("the text is previewed", () => page.driver.executeScript("return document.querySelector('.preview td') !== null"));
  await fits("an editor with its preview");
  await accessible(page, "an editor with its preview on a phone", null);
});
