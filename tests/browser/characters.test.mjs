// The console: characters that are written, checked, saved, compared, restored, heard and talked with.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;

/** The console, signed in with a key of the partner that has these scopes, or all. */
async function signedIn(stage, scopes) {
  const { api_key } = (await stage.backend.admin("POST", `/api/keys/${PARTNER}`, { name: "characters", ...(scopes && { scopes }) })).content;
  const page = new ConsolePage(stage.browser, stage.backend.url);
  await page.forget();
  await page.open();
  await page.signIn(api_key);
  await page.says("Overview");
  return page;
}

/** A name of its own for each browser, since they share the backend. */
const named = (stage, name) => `${name}-${stage.browserName}-${Date.now()}`;

const at = (name, rest = "") => `/api/characters/${PARTNER}/${name}${rest}`;

const value = async (page, name) => (await page.field(name)).getAttribute("value");

/** Opens a `details` element by the beginning of its summary. */
const unfold = (page, summary) =>
  until(`there is ${summary} to open`, () =>
    page.driver.executeScript((wanted) => {
      const found = [...document.querySelectorAll("main summary")].filter((element) => element.innerText.trim().startsWith(wanted)).at(-1);
      if (found && !found.parentElement.open) found.click();
      return Boolean(found);
    }, summary));

/** Marks the radio button with this label. */
const mark = (page, label) =>
  until(`there is ${label} to mark`, () =>
    page.driver.executeScript((wanted) => {
      const found = [...document.querySelectorAll("main input[type=radio]")].find(({ ariaLabel }) => ariaLabel === wanted);
      found?.click();
      return Boolean(found);
    }, label));

/** Waits until the last reply of the playground has these words. */
const replies = (page, words) =>
  until(`the reply has ${words}`, () =>
    page.driver.executeScript((wanted) => [...document.querySelectorAll(".transcript > li.bot > p.text")].at(-1)?.innerText.includes(wanted), words));

/** Says something in the playground. */
const say = async (page, words) => (await page.field("message")).sendKeys(words, Key.ENTER);

const turns = (page) => page.driver.executeScript("return document.querySelectorAll('.transcript > li').length");

consoleScene("a character is written in the console, checked while it is typed, and its versions are compared and restored", {}, async (stage) => {
  const page = await signedIn(stage);
  const name = named(stage, "guide");
  await page.click("Characters");
  await page.click("Create a character");
  await page.says("The name is missing.");
  await accessible(page, "a new character", null);
  await page.enter("id", "not a name");
  await page.says("beginning with a letter or digit");
  await page.enter("id", name);
  // What saving would refuse stands at its field, with its place.
  await page.enter("personality", "You are {{ robot_name }}.\nSay {{ motto|uper }}.");
  await page.says("Line 2, column 5: unknown filter uper");
  await page.enter("language", "Elvish");
  await page.says("2 problems: it cannot be saved");
  await accessible(page, "problems of a character", null);
  await page.press("personality");
  const selected = await page.driver.executeScript("const { value, selectionStart } = document.activeElement; return value.slice(selectionStart)");
  assert.equal(selected, "{{ motto|uper }}.", "the problem leads to its place");
  await page.enter("language", "English");
  await page.enter("personality", `You are {{ robot_name }}. ${HOSTILE}\nSay {{ motto }}.`);
  await page.enter("robot_name", "Ada");
  await page.says("It can be saved");
  // A value that requests give is asked for.
  await page.says("motto has no value of its own");
  await page.enter("value-motto", "onwards");
  await page.says("Say onwards.");
  await page.click("Add a greeting");
  await page.enter("greeting-0", "Hello, this is {{ robot_name }}.");
  await page.says("Hello, this is Ada.");
  await page.press("Add a greeting");
  await page.enter("greeting-1", "Good day.");
  await page.press("Move greeting 2 up");
  await until("the greetings have changed places", async () => (await value(page, "greeting-0")) === "Good day.");
  await page.focuses("Move greeting 1 up");
  await unfold(page, "0 documents of its own");
  const files = await page.field("documents");
  await page.driver.executeScript((field) => {
    const data = new DataTransfer();
    data.items.add(new File(["The museum opens at ten."], "Opening hours.txt"));
    data.items.add(new File([new Uint8Array([255, 254, 0])], "picture.txt"));
    field.files = data.files;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }, files);
  await page.says("picture.txt was not added");
  assert.equal(await value(page, "title-0"), "Opening hours");
  await page.choose("facts", "these fields");
  await page.enter("fact-0", "pet");
  await page.choose("facts", "none");
  await page.choose("facts", "these fields");
  assert.equal(await value(page, "fact-0"), "pet", "typed fields come back with their choice");
  // A problem of a field that is folded away unfolds it.
  await page.enter("title-0", "Hours ".repeat(60));
  await page.says("1 problem: it cannot be saved");
  await page.driver.executeScript(() => (document.querySelector("details[data-holds^=title-]").open = false));
  await page.press("parameters.documents[0].title");
  await until("the problem leads to its field", async () => (await page.driver.executeScript("return document.activeElement.name")) === "title-0");
  await page.enter("title-0", "Opening hours");
  await page.says("It can be saved");
  await accessible(page, "a character with all of its fields", null);

  // What is written survives a visit elsewhere.
  await page.click("Calls");
  await page.click("1 unsaved text");
  await page.driver.executeScript("document.querySelector('dialog[open] li a').click()");
  await page.says("It can be saved");
  assert.equal(await value(page, "robot_name"), "Ada");
  await page.click("Create");
  await page.says(`${name} is saved as version 1`);
  await page.saysNoMore("1 unsaved text");
  const { parameters } = (await stage.backend.admin("GET", at(name))).content;
  assert.deepEqual(parameters.greetings, ["Good day.", "Hello, this is {{ robot_name }}."]);
  assert.deepEqual(parameters.documents, [{ title: "Opening hours", text: "The museum opens at ten." }]);
  assert.deepEqual(parameters.profile_schema, { pet: { type: "string" } });

  // A second version, with a parameter that the form has no field for.
  await stage.backend.admin("PUT", at(name), { personality: "You are a guide.", parameters: { robot_name: "Ada", shop: { city: "Delft" } } });
  await page.says("You are a guide.");
  await page.click("Edit");
  await page.says("Delft");
  await page.enter("personality", "You are a friendly guide.");
  await stage.backend.admin("PUT", at(name), { personality: "You are a short guide.", parameters: { robot_name: "Eva", shop: { city: "Delft" } } });
  await page.says("while you were editing version 2");
  await unfold(page, "Compare version 3 with yours");
  await page.says("You are a short guide.");
  await accessible(page, "a conflict of characters", null);
  assert.equal((await stage.backend.admin("GET", at(name))).content.version, 3);
  await page.click("Save mine as version 4");
  await page.says("is saved as version 4");
  const fourth = (await stage.backend.admin("GET", at(name))).content;
  assert.deepEqual([fourth.personality, fourth.parameters.robot_name, fourth.parameters.shop], ["You are a friendly guide.", "Ada", { city: "Delft" }]);

  await mark(page, "Compare from version 1");
  await mark(page, "Compare to version 3");
  await page.says("Changes from version 1 to 3");
  await page.says("Opening hours");
  await accessible(page, "versions that are compared", null);
  await page.click("Close");
  await page.click("Version 1");
  await page.click("Restore this version…");
  await page.says("It is saved as version 5");
  await accessible(page, "a version to restore", null);
  await page.click("Restore");
  await page.says("Version 1 is restored as version 5");
  assert.deepEqual((await stage.backend.admin("GET", at(name))).content.parameters, parameters);
  await page.click("Delete…");
  await page.says("All 5 versions are deleted with it");
  await page.click("Delete");
  await page.says(`${name} is deleted`);
  assert.equal((await stage.backend.admin("GET", at(name), undefined, [404])).status, 404);
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.driver.executeScript("return window.uncaught"), []);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("a character is heard and talked with in the console before it is saved", {}, async (stage) => {
  const saved = (await stage.backend.admin("GET", at("librarian"))).content.version;
  const page = await signedIn(stage);
  await page.open(`p/${PARTNER}/characters/librarian/edit`);
  await page.says("It can be saved");
  // The menu is there once the voices are listed.
  await until("a voice is chosen", () =>
    page.driver.executeScript(() => {
      const field = document.querySelector("select[name=voice]");
      const english = [...(field?.options ?? [])].find(({ value }) => value.startsWith("en"));
      if (!english) return false;
      field.value = english.value;
      return field.dispatchEvent(new Event("change", { bubbles: true }));
    }));
  await page.enter("sample", "Good morning.");
  await page.click("Listen");
  await until("there is a sound", () => page.driver.executeScript("return document.querySelector('.voice-preview audio')?.duration > 0.3"));
  await accessible(page, "a voice to hear", null);

  await page.click("Add a greeting");
  await page.enter("greeting-0", "Welcome to the museum.");
  await page.press("Playground");
  await page.says("as it stands on this page");
  await page.says("Welcome to the museum.");
  await say(page, "When does the museum open?");
  await replies(page, "ten");
  await page.says("1 passage");
  await unfold(page, "1 passage");
  await page.says("Opening hours");
  await page.says("Model, first text");
  await page.says("n/a");
  await accessible(page, "a conversation with a draft", null);
  assert.equal(await turns(page), 3, "the greeting, the question and the reply");

  // A reply that takes long is stopped; the next one goes on.
  await page.driver.executeScript(() => {
    const { fetch } = window;
    window.isSlow = true;
    window.fetch = async (resource, init) => {
      if (!window.isSlow || !(resource.url ?? String(resource)).endsWith("/replies")) return fetch(resource, init);
      const start = (controller) => {
        const data = { type: "reply.delta", text: "It is a long" };
        controller.enqueue(new TextEncoder().encode(`event: reply.delta\ndata: ${JSON.stringify(data)}\n\n`));
        resource.signal.addEventListener("abort", () => (window.isAborted = true));
      };
      return new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });
    };
  });
  await say(page, "And when does it close?");
  await replies(page, "It is a long");
  await page.click("Stop");
  await page.says("Stopped.");
  assert.equal(await page.driver.executeScript("return window.isAborted"), true);
  await page.driver.executeScript("window.isSlow = false");
  const before = await turns(page);
  await page.click("Try again");
  await page.saysNoMore("Stopped.");
  await page.says("Send");
  assert.equal(await turns(page), before, "the new reply takes the place of the one that was stopped");
  await say(page, "When does the museum close?");
  await replies(page, "six");
  const said = await turns(page);
  await page.click("Clear");
  await page.click("Undo");
  await until("the conversation is back", async () => (await turns(page)) === said);
  await page.click("Clear");
  await until("the greeting alone is left", async () => (await turns(page)) === 1);
  await page.click("Discard");
  await page.click("Discard");
  await page.says("Talk with it");
  // The server has one model. A list with another one shows that the choice is sent: the server refuses it.
  assert.equal(await page.ask("GET", `/api/character_drafts/${PARTNER}/models`), 200);
  await page.driver.executeScript(() => {
    const { fetch } = window;
    const models = ["builtin/extractive", "gone"].map((name, place) => ({ name, is_default: place === 0, is_priced: false }));
    window.fetch = async (resource, init) =>
      (resource.url ?? String(resource)).endsWith("/models") ? Response.json({ models }) : fetch(resource, init);
  });
  await page.click("Talk with it");
  await page.choose("model", "gone");
  await say(page, "When does the museum open?");
  await page.says("there is no model gone");
  await page.choose("model", "builtin/extractive (as in calls)");
  await accessible(page, "a choice of models", null);
  const asked = await turns(page);
  await page.click("Try again");
  await replies(page, "ten");
  assert.equal(await turns(page), asked, "the reply takes the place of the one that failed");
  const { version, personality, parameters } = (await stage.backend.admin("GET", at("librarian"))).content;
  assert.equal(version, saved);
  // A version that somebody saves meanwhile does not end the conversation.
  await stage.backend.admin("PUT", at("librarian"), { personality: `${personality}\nBe brief.`, parameters });
  await page.says(`New replies come from version ${saved + 1}.`);
  await replies(page, "ten");
  assert.deepEqual(await page.violations(), []);

  // Without the scopes there is neither a voice nor a playground.
  const writer = await signedIn(stage, ["characters"]);
  await writer.open(`p/${PARTNER}/characters/librarian/edit`);
  await writer.says("It can be saved");
  const text = await writer.text();
  for (const absent of ["Playground", "Listen"]) assert.ok(!text.includes(absent), absent);
  await accessible(writer, "a character for a writer", null);
});

consoleScene("a character of the console on a phone", { once: true, browser: { phone: { width: 360, height: 740 } } }, async (stage) => {
  const page = await signedIn(stage);
  for (const rest of ["", "/librarian", "/librarian/edit"]) {
    await page.open(`p/${PARTNER}/characters${rest}`);
    await page.says(rest === "" ? "librarian" : "Personality");
    if (rest.endsWith("edit")) await page.says("It can be saved");
    const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]");
    assert.ok(wanted <= there, `${rest}: ${wanted} of ${there} pixels`);
  }
  await accessible(page, "a character on a phone", null);
});
