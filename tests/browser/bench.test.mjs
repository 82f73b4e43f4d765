// The retrieval of a knowledge base in the console: searches, saved questions, evaluations.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;
const TEXTS = {
  Lions: `# Lions\n\n${"Lions eat meat, and their keepers bring it at noon. ".repeat(60)}\n\n## Sleep\n\nLions sleep for twenty hours a day, mostly in the shade.\n`,
  [HOSTILE]: `# Opening\n\nThe zoo opens at nine and closes at six. ${HOSTILE}\n`,
  Parrots: "# Parrots\n\nParrots talk, and repeat what visitors say.\n",
};

function form(fields) {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  return made;
}

/** A knowledge base with documents that can be found. */
class Base {
  constructor(stage, name) {
    this.stage = stage;
    this.name = `${name} ${stage.browserName} ${Date.now()}`;
  }

  ask(method, route, rest = "", body = undefined) {
    return this.stage.backend.admin(method, `/api/${route}/${PARTNER}/${encodeURIComponent(this.name)}${rest}`, body);
  }

  async open() {
    await this.stage.backend.admin("POST", `/api/knowledgebases/${PARTNER}`, form({ name: this.name }));
    await this.ask("POST", "folders", "", form({ name: "texts" }));
    this.ids = {};
    for (const [name, text] of Object.entries(TEXTS)) {
      const fields = { type: "file", folder: "texts", name, file: new File([text], "text.md"), use_original_as_rewritten: "true" };
      this.ids[name] = (await this.ask("POST", "documents", "", form(fields))).content.id;
    }
    await this.embedded();
    const page = new ConsolePage(this.stage.browser, this.stage.backend.url);
    await page.forget();
    await page.open(`p/${PARTNER}/knowledge/${encodeURIComponent(this.name)}`);
    const { content } = await this.stage.backend.admin("POST", `/api/keys/${PARTNER}`, { name: "bench" });
    await page.signIn(content.api_key);
    await page.says("All documents");
    return page;
  }

  embedded() {
    return until("all documents can be found", async () => {
      const { content } = await this.ask("GET", "embedding");
      return content.embedded_document_count === Object.keys(TEXTS).length && content.last_update_status === "success";
    });
  }

  async write(name, content) {
    await this.ask("PUT", "documents", `/${this.ids[name]}/content/rewritten`, form({ content }));
    await this.embedded();
  }
}

/** Ticks or clears the box with this label. */
async function tick(page, label) {
  await until(`there is a box ${label}`, () =>
    page.driver.executeScript((wanted) => {
      const found = [...document.querySelectorAll("main input[type=checkbox]")].find((box) => box.ariaLabel === wanted);
      found?.click();
      return found !== undefined;
    }, label),
  );
}

/** Asks a question, by the keyboard. */
async function search(page, question) {
  await page.enter("user_message", question);
  await (await page.field("user_message")).sendKeys(Key.ENTER);
}

const address = async (page) => new URL(await page.driver.getCurrentUrl());

async function unharmed(page) {
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
  assert.deepEqual(await page.driver.executeScript("return window.uncaught"), []);
}

consoleScene("a question shows how its passages are found, is saved, and is evaluated before and after a change", {}, async (stage) => {
  const base = new Base(stage, "bench");
  const page = await base.open();
  await page.click("Retrieval");
  await page.says("Ask a question");
  // What is typed outlives a look at another tab.
  await page.enter("user_message", "When do li");
  await page.click("Saved questions");
  await page.saysNoMore("Ask a question");
  await page.click("Try a question");
  await page.says("Ask a question");
  assert.equal(await (await page.field("user_message")).getAttribute("value"), "When do li");
  await search(page, "When do lions sleep?");
  await page.says("in the shade");
  assert.equal((await address(page)).searchParams.get("q"), "When do lions sleep?");
  // Each stream's part of the best result, which add up to all of it.
  const parts = await page.driver.executeScript(() => {
    const numbers = (text) => text.match(/(\d+)\s?%/)?.[1];
    return [...document.querySelectorAll(".results > li:first-child .shares li")].map((part) => Number(numbers(part.innerText)));
  });
  const sum = parts.reduce((one, other) => one + other, 0);
  assert.ok(parts.length >= 2 && sum >= 98 && sum <= 102, `${parts}`);
  await page.says("has no vectors");
  await page.driver.executeScript(() => {
    for (const hidden of document.querySelectorAll("main details")) hidden.open = true;
  });
  await page.says("These passages were looked up");
  await accessible(page, "a search", null);

  // What the address holds is found again.
  const { pathname, search: query } = await address(page);
  await page.open(pathname.replace("/console/", "") + query);
  await page.says("in the shade");
  await tick(page, "Expected: Lions, result 1");
  await page.says("document 1");
  // A tick is kept on other tabs and views, and listed until it is saved.
  await page.click("Saved questions");
  await page.says("No saved questions yet");
  await page.click("Calls");
  await page.click("1 unsaved text");
  await page.driver.executeScript("document.querySelector('dialog[open] li a').click()");
  await page.says("document 1");
  await page.click("Save the question");
  await page.says("This question is saved.");
  await page.saysNoMore("1 unsaved text");
  assert.ok((await address(page)).searchParams.get("question"));

  await page.click("New question");
  await search(page, "Where do tigers swim?");
  await page.says("Nothing was found");
  await page.enter("expected-name", "img");
  await page.click(`${HOSTILE} texts`);
  await page.says("not found");
  await page.click("Save the question");
  await page.says("This question is saved.");
  await accessible(page, "a saved question", null);

  await page.click("Saved questions");
  await page.says("2 questions");
  await accessible(page, "saved questions", null);
  await page.click("Evaluations");
  await page.says("No evaluations yet");
  await page.click("Run an evaluation");
  await accessible(page, "beginning an evaluation", null);
  await page.click("Run");
  await page.says("0.500");
  await base.write(HOSTILE, `${TEXTS[HOSTILE]}\nTigers swim in the pool.\n`);
  await page.click("Run an evaluation");
  await page.click("Run");
  await page.says("1.000");
  await accessible(page, "evaluations", null);
  await page.driver.executeScript(() => document.querySelector("main tbody th a").click());
  await page.says("+0.500");
  await page.says("over the 2 questions that both asked alike");
  await page.says("documents embedded again");
  await page.says("before: not found");
  await accessible(page, "an evaluation", null);
  await page.click("Where do tigers swim?");
  await page.says("This question is saved.");
  await page.says("Tigers swim in the pool.");

  await page.click("Saved questions");
  await page.click("Delete Where do tigers swim?");
  await page.says("Its results in all evaluations are deleted");
  await page.click("Delete");
  await page.says("1 question;");
  await unharmed(page);
});

consoleScene("a saved question that others change or delete meanwhile says so, and is not lost", { once: true }, async (stage) => {
  const base = new Base(stage, "shared");
  const page = await base.open();
  await page.click("Retrieval");
  await search(page, "When do lions sleep?");
  await page.says("in the shade");
  await tick(page, "Expected: Lions, result 1");
  await page.click("Save the question");
  await page.says("This question is saved.");
  const id = (await address(page)).searchParams.get("question");
  await page.saysNoMore("Save the changes");
  await page.enter("expected-name", "Parrots");
  await page.click("Parrots texts");
  await page.says("Save the changes");
  const other = { user_message: "When do lions rest?", expected_document_ids: [base.ids.Lions] };
  await base.ask("PUT", "rag-questions", `/${id}`, other);
  await page.says("Somebody else changed this saved question meanwhile.");
  await accessible(page, "a saved question that was changed", null);
  await page.click("Discard my changes");
  await page.says("This question is saved.");
  await until("the question is that of the other", async () => (await (await page.field("user_message")).getProperty("value")) === other.user_message);
  await page.saysNoMore("1 unsaved text");

  await page.enter("expected-name", "Parrots");
  await page.click("Parrots texts");
  await base.ask("DELETE", "rag-questions", `/${id}`);
  await page.says("Somebody deleted this saved question.");
  await page.click("Save the question");
  await page.says("This question is saved.");
  await page.saysNoMore("1 unsaved text");
  const { questions } = (await base.ask("GET", "rag-questions")).content;
  assert.deepEqual(questions.map(({ expected_documents: all }) => all.length), [2]);
  // A link to the one that is gone leads on.
  await page.open(`p/${PARTNER}/knowledge/${encodeURIComponent(base.name)}/retrieval?question=${id}`);
  await page.says("This saved question was deleted");
  await accessible(page, "a link to a question that was deleted", null);
  await page.click("New question");
  await page.says("Ask a question");
  await unharmed(page);
});

consoleScene("a link leads from a passage to its chunk, and a name asks the question in a second form", { once: true }, async (stage) => {
  const base = new Base(stage, "links");
  const page = await base.open();
  const query = new URLSearchParams({ q: "When do you sleep?", as: "Lions", bm25: "2" });
  await page.open(`p/${PARTNER}/knowledge/${encodeURIComponent(base.name)}/retrieval?${query}`);
  await page.says("When do Lions sleep?");
  await page.says("With the name");
  assert.equal(await (await page.field("rrf_weight_bm25")).getAttribute("value"), "2");
  await page.enter("rrf_weight_sparse", "0");
  await page.click("Search");
  await page.says("Its weight is 0.");
  assert.equal((await address(page)).searchParams.get("sparse"), "0");
  await page.driver.executeScript(() => {
    const results = [...document.querySelectorAll(".results > li")];
    results.find((result) => result.innerText.includes("in the shade")).querySelector(".place a").click();
  });
  await until("the chunk comes first", async () => /From chunk [2-9]\d* on/.test(await page.text()));
  await page.says("mostly in the shade");
  await page.saysNoMore("Chunk 1,");
  await page.click("All chunks");
  await page.says("Chunk 1,");
  await unharmed(page);
});

consoleScene("the retrieval of a knowledge base on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const base = new Base(stage, "phone");
  const page = await base.open();
  const fits = async (state) => {
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, innerWidth]");
    assert.ok(wanted <= there, `${state} is ${wanted} px wide`);
  };
  await page.click("Retrieval");
  await search(page, "When do lions sleep?");
  await page.says("in the shade");
  await fits("a search");
  // The streams stand below each other.
  const lefts = await page.driver.executeScript(() => [...document.querySelectorAll(".streams > section")].map((it) => it.getBoundingClientRect().left));
  assert.equal(new Set(lefts).size, 1, `${lefts}`);
  await tick(page, "Expected: Lions, result 1");
  await page.click("Save the question");
  await page.says("This question is saved.");
  await page.click("Saved questions");
  await page.says("1 question;");
  await fits("saved questions");
  await page.click("Evaluations");
  await page.click("Run an evaluation");
  await page.click("Run");
  await page.says("1.000");
  await fits("evaluations");
  await unharmed(page);
});
