// The page of the console that calls a character, saved or not.

import assert from "node:assert/strict";

import { Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { consoleScene, scene } from "./stage/stage.mjs";
import { understoodInPart } from "./stage/speech.mjs";
import { until } from "./stage/waiting.mjs";

/** Louder than silence on the sound card, quieter than any speech. */
const LOUD = 0.005;

async function signedIn(stage, rest) {
  const { api_key } = (await stage.backend.admin("POST", `/api/keys/${PARTNER}`, { name: "calls of the console" })).content;
  const page = new ConsolePage(stage.browser, stage.backend.url);
  await page.forget();
  await page.open();
  await page.signIn(api_key);
  await page.says("Overview");
  await page.open(rest);
  return page;
}

/** Goes on in the window that `open` opens. Returns what leads back. */
async function inNewWindow({ driver }, open) {
  const before = await driver.getAllWindowHandles();
  const here = await driver.getWindowHandle();
  await open();
  const opened = await until("a window opens", async () => (await driver.getAllWindowHandles()).find((handle) => !before.includes(handle)));
  await driver.switchTo().window(opened);
  return { back: () => driver.switchTo().window(here), again: () => driver.switchTo().window(opened) };
}

/** Returns what was said and understood, as the page shows it. */
const lines = ({ driver }) =>
  driver.executeScript(() =>
    [...document.querySelectorAll(".transcript > li")].map((line) => [line.className, line.querySelector("p").innerText, line.ariaBusy === "true"]));

/** Waits for a line of one side that does not change any more. */
async function said(page, side, what, test) {
  try {
    return await until(`the page shows ${what}`, async () => (await lines(page)).find(([from, text, isOpen]) => from === side && !isOpen && test(text))?.[1], { withinMs: 60_000 });
  } catch (error) {
    error.message += `\n\nIt says:\n${await page.text()}`;
    throw error;
  }
}

const pressed = ({ driver }) => driver.executeScript("return document.querySelector('button[aria-pressed]').ariaPressed");

scene("a draft is called from its playground, understands, answers, and its call is found in the console", { calm: true }, async (stage) => {
  const { backend, sound } = stage;
  const page = await signedIn(stage, `p/${PARTNER}/new-character`);
  await page.enter("personality", "You are a guide.");
  await page.enter("robot_name", "Ada");
  await page.click("Add a greeting");
  await page.enter("greeting-0", "Good morning.");
  await page.says("The name is missing.");
  await page.press("Playground");
  const { back, again } = await inNewWindow(page, () => page.press("Call"));
  await page.says("Talk with Ada");
  await page.says("Not in a call");
  await page.driver.executeScript(`
    window.violations = [];
    addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => window.violations.push(violatedDirective + " " + blockedURI));
  `);
  await accessible(page, "the page of calls", null);

  // What is written after the page was opened counts for the next call.
  await back();
  await page.enter("greeting-0", "Good evening.");
  await again();
  const recording = sound.record("A");
  await page.press("Call");
  await said(page, "bot", "the greeting of the draft", (text) => text.includes("Good evening"));
  await page.says("Listening");
  assert.ok((await recording.stop()) > LOUD, "nothing was to be heard at the loudspeaker");
  await stage.say();
  const words = await said(page, "user", "the recorded words", understoodInPart);
  const answer = await said(page, "bot", "an answer", (text) => !text.includes("Good evening"));
  await page.says("Last reply");
  await page.says("heard after");
  await accessible(page, "a call", null);
  await page.press("Mute", Key.SPACE);
  assert.equal(await pressed(page), "true");
  await page.press("Mute", Key.SPACE);
  assert.equal(await pressed(page), "false");
  await page.click("Hang up");
  await page.says("You hung up");
  await accessible(page, "a call that is over", null);
  assert.deepEqual(await page.violations(), []);

  await inNewWindow(page, () => page.press("View the call in the console"));
  await page.says("completed");
  await page.says("Good evening.");
  await page.says(words);
  const path = await page.driver.executeScript("return location.pathname");
  assert.ok(path.startsWith(`/console/p/${PARTNER}/calls/`), path);
  const id = `/v2/calls/${path.split("/").at(-1)}`;
  const { data } = (await backend.admin("GET", id)).content;
  assert.equal(data.character, null, "a draft is no saved character");
  const { transcript } = await backend.transcript(id);
  assert.ok(transcript.some(({ originator, text }) => originator === "bot" && answer.startsWith(text)), "the answer is stored");
});

consoleScene("the page of calls on a phone, without a microphone that is allowed, and without a session", { browser: { phone: { width: 360, height: 740 }, asking: true } }, async (stage) => {
  const page = await signedIn(stage, `talk?partner=${PARTNER}&character=greeter`);
  await page.says("Talk with greeter");
  const [wanted, there] = await page.driver.executeScript("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]");
  assert.ok(wanted <= there, `${wanted} of ${there} pixels`);
  await stage.browser.denyMicrophone();
  await page.press("Call");
  await page.says("does not let this page use the microphone");
  await page.says("The call failed");
  await page.focuses("Call");
  await accessible(page, "a call that failed", null);
  assert.equal(await page.ask("DELETE", "/api/console/session"), 204);
  await page.click("Call");
  await page.says("You are not signed in.");
  await page.open(`talk?partner=${PARTNER}`);
  await page.says("You are not signed in.");
});
