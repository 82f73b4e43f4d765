// The console: voices, transcripts of recordings, and dialog analyses.

import assert from "node:assert/strict";

import { By, Key } from "selenium-webdriver";

import { accessible } from "./stage/axe.mjs";
import { PARTNER } from "./stage/backend.mjs";
import { ConsolePage } from "./stage/console.mjs";
import { Services } from "./stage/services.mjs";
import { repeatedSpeech, understoodInPart } from "./stage/speech.mjs";
import { consoleScene } from "./stage/stage.mjs";
import { until } from "./stage/waiting.mjs";

const HOSTILE = `<img src=x onerror="window.hostile = true">`;
const PHONE = { width: 360, height: 740 };
const services = await Services.start();
const backend = (browser) => services.settings(browser);

/** Opens a view of the console with a key of the partner. */
async function open({ backend, browser }, view) {
  const { api_key } = (await backend.admin("POST", `/api/keys/${PARTNER}`, { name: "voices" })).content;
  const page = new ConsolePage(browser, backend.url);
  await page.forget();
  await page.open();
  await page.signIn(api_key);
  await page.says("Overview");
  await page.open(`p/${PARTNER}/${view}`);
  return page;
}

/** Drops a file onto the view. */
const drop = (page, name, bytes) =>
  page.driver.executeScript((fileName, base64) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))], fileName));
    const target = document.querySelector("main .documents");
    for (const type of ["dragover", "drop"]) target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: data }));
  }, name, bytes.toString("base64"));

/** Waveforms that are drawn, each by its number of bars. */
const waveforms = (page) =>
  page.driver.executeScript(() => [...document.querySelectorAll(".wave svg")].map((svg) => svg.innerHTML.match(/M[\d.]+ [\d.]+V/g).length));

/** Bars of a sound that were played. */
const played = (page, place) =>
  page.driver.executeScript((at) => document.querySelectorAll(".wave .played")[at].getAttribute("d").split("M").length - 1, place);

const fits = (page) => page.driver.executeScript("return document.documentElement.scrollWidth <= innerWidth");

consoleScene("a recording becomes a voice in the console: split, embedded, heard, preferred, renamed and deleted", { backend }, async (stage) => {
  const page = await open(stage, "voices");
  const library = `/api/voices/${PARTNER}`;
  await page.says("No voices yet");
  await accessible(page, "no voices", null);
  await drop(page, "Ada.wav", repeatedSpeech(10));
  await page.says("Add a voice");
  await page.says("Ada.wav");
  await accessible(page, "adding a voice", null);
  await page.enter("creator_name", HOSTILE);
  await page.press("Add");
  await page.says("Made from");
  // Without a click: the recording is split, and its samples are embedded.
  await page.says("Download the embedding");
  await page.says("Ada.wav, 0:");
  await page.says("score 0.93");
  const read = async (name) => (await stage.backend.admin("GET", `${library}/${encodeURIComponent(name)}`)).content;
  const { samples } = await read("Ada");
  assert.ok(samples.length >= 2, `samples: ${samples.length}`);
  await until("each sample has a waveform", async () => (await waveforms(page)).length === samples.length);
  assert.deepEqual(await waveforms(page), samples.map(() => 150));
  await accessible(page, "a voice", null);

  // One sound at a time.
  await page.press("Play sample 0");
  await until("sample 0 plays", async () => (await played(page, 0)) > 0);
  await page.click("Play sample 1");
  await until("sample 1 plays", async () => (await played(page, 1)) > 0);
  await until("sample 0 is silent", async () => (await played(page, 0)) === 0);
  await page.click("Pause sample 1");
  // By keyboard, the waveform is a slider.
  const slider = await page.driver.findElement(By.css(`[aria-label="Position in sample 0"]`));
  await slider.sendKeys(Key.END);
  await until("the slider is at the end", async () => (await played(page, 0)) === 150);
  await slider.sendKeys(Key.HOME);
  await until("the slider is at the beginning", async () => (await played(page, 0)) === 0);

  await page.driver.executeScript(() => document.querySelectorAll("details > summary")[1].click());
  await page.click("Play sentence 0 of sample 1");
  await page.click("Pause sentence 0 of sample 1");
  await page.driver.executeScript(() => document.querySelectorAll("[name^=preferred]")[1].click());
  await page.says("Sample 1 is preferred");
  assert.equal((await read("Ada")).preferred_sample_index, 1);
  await page.click("Prefer no sample");
  await page.says("No sample is preferred");

  await page.driver.executeScript(() => {
    window.saved = [];
    const { click } = HTMLAnchorElement.prototype;
    HTMLAnchorElement.prototype.click = function () {
      if (this.download) window.saved.push(this.download);
      else click.call(this);
    };
  });
  await page.click("Download the samples");
  await page.click("Download the embedding");
  await until("two files are saved", async () => (await page.driver.executeScript("return window.saved.length")) === 2);
  assert.deepEqual((await page.driver.executeScript("return window.saved")).sort(), ["Ada-scripted.zip", "Ada.zip"]);

  await page.click("Split again…");
  await accessible(page, "splitting again", null);
  await page.enter("sample_duration", "5");
  await page.press("Split");
  await until("there are more samples", async () => (await read("Ada")).samples.length > samples.length);
  await page.says("does not speak");
  await page.saysNoMore("score");
  await page.click("Embed…");
  await page.press("Embed");
  await page.says("score 0.93");

  await page.click("Rename…");
  await page.enter("name", HOSTILE);
  await page.press("Rename");
  await page.says("The voice is called");
  const renamed = HOSTILE;
  await page.says(`Voice ${renamed}`);
  await page.click("All voices");
  // Somebody else adds a voice, which appears by itself.
  const form = new FormData();
  form.append("name", "Empty one");
  await stage.backend.admin("POST", `${library}/empty`, form);
  await page.says("Empty one");
  await accessible(page, "voices", null);
  await page.follow(`p/${PARTNER}/voices/${encodeURIComponent("Empty one")}`);
  await page.says("No samples");
  await drop(page, "sample.wav", repeatedSpeech(1));
  await page.press("Add");
  await page.says("1 sample");
  await page.click("Delete sample 0");
  await page.press("Delete");
  await page.says("No samples");
  await page.click("Delete…");
  await page.press("Delete");
  await page.says("is deleted");
  await page.click(`Delete ${renamed}`);
  await page.press("Delete");
  await page.says("No voices yet");
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("a recording is transcribed in the console, and what failed is tried again", { once: true, backend }, async (stage) => {
  const page = await open(stage, "transcripts");
  await page.says("No transcripts yet");
  await drop(page, "meeting.wav", repeatedSpeech(1));
  await page.says("meeting.wav");
  await accessible(page, "a new transcript", null);
  await page.press("Transcribe");
  await page.says("Length of the recording");
  const text = await page.driver.executeScript("return document.querySelector('.long').innerText");
  assert.ok(understoodInPart(text), text);
  await accessible(page, "a transcript", null);
  await page.click("All transcripts");
  await page.click("Transcribe a recording");
  await page.driver.executeScript(() => document.querySelectorAll("dialog [name=kind]")[1].click());
  await page.enter("audio_url", "https://");
  await page.enter("audio_url", `${stage.backend.url}/health`);
  await page.press("Transcribe");
  await page.says("What is at audio_url is no recording of a supported type.");
  await page.says("Send it again as a new transcript.");
  assert.ok(!(await page.text()).includes("Try again"));

  // A quota that has room for less than the recording.
  const quota = (await stage.backend.admin("POST", `/api/quotas/${PARTNER}`, { name: "short", kinds: ["transcript"], limits: { seconds: 1 } })).content;
  const form = new FormData();
  form.append("audio", new File([repeatedSpeech(1)], "a.wav"));
  const answer = await fetch(`${stage.backend.url}/v2/transcript`, { method: "POST", headers: { "X-Api-Key": quota.api_key }, body: form });
  assert.equal(answer.status, 200);
  const { id } = await answer.json();
  await page.click("All transcripts");
  await page.says("The quota is exhausted.");
  await accessible(page, "transcripts", null);
  await page.driver.executeScript(() => {
    document.querySelector(".choice").open = true;
    document.querySelector("[name=state-completed]").click();
  });
  await page.saysNoMore("The quota is exhausted.");
  assert.match(await page.driver.getCurrentUrl(), /state=completed/);
  await page.click("Show all");
  await page.follow(`p/${PARTNER}/transcripts/${id.split("/").at(-1)}`);
  await page.says("The recording is kept until the transcript is deleted.");
  await stage.backend.admin("PUT", `/api/quotas/${PARTNER}/${quota.id}`, { limits: { seconds: 100 } });
  await page.click("Try again");
  await page.says("Length of the recording");
  await page.click("Delete…");
  await page.press("Delete");
  await page.says("The transcript is deleted");
  assert.deepEqual(await page.violations(), []);
});

const CONVERSATION = {
  input: {
    messages: [
      { originator: "bot", text: "Hello! Who are you?" },
      { originator: "user", text: `I am Ada ${HOSTILE}, and I live in Berlin.` },
    ],
    language: "English",
    current_profile: { name: null, city: "Paris" },
    profile_schema: { name: { type: "string", description: "What the user is called" }, city: { type: "string" } },
    feedback_schema: { mood: { type: "string" }, stars: { type: "integer", description: "1 to 5" } },
  },
};

consoleScene("the result of a dialog analysis is read in the console, and one that failed is tried again", { once: true, backend }, async (stage) => {
  const page = await open(stage, "analyses");
  const service = services.of(stage.browserName);
  await page.says("No dialog analyses");
  await accessible(page, "no analyses", null);
  service.answer = null;
  const { content } = await stage.backend.admin("POST", `/v2/dialog_analyses?partner=${PARTNER}`, CONVERSATION);
  // It appears by itself.
  await page.says("The model failed");
  await accessible(page, "analyses", null);
  await page.follow(`p/${PARTNER}/analyses/${content.id.split("/").at(-1)}`);
  await page.says("What the user is called");
  await page.says(HOSTILE);
  await accessible(page, "a failed analysis", null);
  service.answer = { profile: { name: HOSTILE, city: "Berlin" }, contradicted: [], feedback: { mood: "glad", stars: 4 } };
  await page.click("Try again");
  await page.says("Berlin");
  await page.says("glad");
  await page.says("The input is deleted when an analysis is completed.");
  await accessible(page, "an analysis", null);
  assert.equal(await page.driver.executeScript("return window.hostile ?? false"), false);
  assert.deepEqual(await page.violations(), []);
});

consoleScene("voices, transcripts and analyses on a phone", { once: true, backend, browser: { phone: PHONE } }, async (stage) => {
  const form = new FormData();
  form.append("name", "A voice with a long name that a phone has no room for in one line");
  form.append("file", new File([repeatedSpeech(10)], "Ada.wav"));
  const { content } = await stage.backend.admin("POST", `/api/voices/${PARTNER}`, form);
  const page = await open(stage, "voices");
  await page.says(content.name);
  assert.ok(await fits(page), "voices");
  await page.follow(`p/${PARTNER}/voices/${encodeURIComponent(content.name)}`);
  await page.says("score 0.93");
  await until("there are waveforms", async () => (await waveforms(page)).length > 0);
  assert.ok(await fits(page), "a voice");
  await accessible(page, "a voice on a phone", null);
  for (const view of ["transcripts", "analyses"]) {
    await page.open(`p/${PARTNER}/${view}`);
    await page.says("No ");
    assert.ok(await fits(page), view);
  }
});
