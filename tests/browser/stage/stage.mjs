// The stage of a test: shared backend and browsers, a sound card for each of them, a customer's server and a tab of its
// own. A failure says what the page showed, what the browser's console said and what the backend logged last.

import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { createCallAtBackend, customerServer } from "../../../examples/server.mjs";
import { webhookReceiver } from "../../../examples/webhook.mjs";
import { Backend, PARTNER, WITH_EARS, WITH_MODELS } from "./backend.mjs";
import { BROWSERS, BrowserPool, LEFT_OUT } from "./browsers.mjs";
import { DemoPage } from "./demo.mjs";
import { watchMachine } from "./machine.mjs";
import { SoundCard } from "./sound.mjs";
import { writeNoise, writeSpeech } from "./speech.mjs";
import { scaled, within } from "./waiting.mjs";
import { Wire } from "./wire.mjs";

const PATIENCE_MS = 180_000;

/** Whether a scene that fails is played once more; `COLLOQUY_TEST_RETRIES=0` lets it fail at once. */
const PLAYS_AGAIN = process.env.COLLOQUY_TEST_RETRIES !== "0";

/** Kinds of scenes, each played in an order of its own. Those of none are light. */
const KINDS = ["alone", "calm", "busy", "waits"];

/** Whether scenes that are the same in every browser are played in all of them nevertheless, and not in one each in turn. */
const EVERYWHERE = process.env.COLLOQUY_TEST_NIGHTLY !== undefined || BROWSERS.length === 1;

const scenes = [];
let once = 0;
const shared = {};

/**
 * A test in every browser, or in one of them.
 *
 * @param {string} name
 * @param {object} options
 * @param {boolean} [options.once] - Whether what it shows does not depend on the browser: it is played in one of them, the next such scene in
 *   the other, and in all of them by `tests/run nightly`.
 * @param {boolean} [options.busy] - Whether the browser works hard: no other busy scene is played meanwhile.
 * @param {boolean} [options.waits] - Whether it mostly waits, for many seconds: it is played beside the others, so that
 *   they need not wait, too.
 * @param {boolean} [options.calm] - Whether somebody speaks in it and is to be understood, or a neural model is to answer in time: a busy
 *   machine tears what is said, and models give way to all else. Nothing else is played, but another such scene in the other browser.
 * @param {boolean} [options.alone] - Whether it measures what anything beside it would change: nothing else is played, in neither browser.
 * @param {boolean} [options.console] - Whether it is one of the console, see [consoleScene].
 * @param {boolean} [options.demo] - Whether one of the console begins at the demo page, as all others do.
 * @param {string} [options.character] - Of the test characters; `quiet` waits for the visitor.
 * @param {number} [options.timeLimitSeconds]
 * @param {number} [options.patienceMs] - How long it may take where it does much more than others, on a machine of ordinary speed.
 * @param {boolean} [options.webhook] - Whether the call has a completion webhook.
 * @param {object} [options.customer] - Other settings for the customer's server.
 * @param {boolean} [options.wire] - Whether the page reaches the backend over a wire that the test can cut.
 * @param {boolean} [options.models] - Whether the backend has neural models; otherwise it has the programs alone.
 * @param {boolean} [options.ears] - Whether it has them to understand, and a program to speak.
 * @param {Record<string, string> | ((browser: string) => Record<string, string>)} [options.backend] - Settings of a backend for this test
 *   alone, or what gives them for a browser.
 * @param {boolean} [options.sound] - Whether the test has a sound card of its own, which it may take apart, or speaks into beside others.
 * @param {object} [options.browser] - Other options, `phone` or `dark`, `asking`, `env` or none, for a browser of this test
 *   alone.
 * @param {(stage: Stage) => Promise<void>} play
 */
export function scene(name, options, play) {
  const browsers = options.once && !EVERYWHERE ? [BROWSERS[once++ % BROWSERS.length]] : BROWSERS;
  scenes.push({ name, options, play, browsers });
}

/** A test of the console, without the demo page. */
export function consoleScene(name, options, play) {
  scene(name, { console: true, ...options }, play);
}

/**
 * Plays all scenes: the busy ones in one browser after the other, beside them those that wait, and all others, two at a time in each browser;
 * then the calm ones, and those that measure.
 */
export function playScenes() {
  if (scenes.length === 0) return;
  if (LEFT_OUT.length > 0) remark(`browser: BROWSER is ${BROWSERS}: nothing was played in ${LEFT_OUT}`);
  before(async () => {
    shared.folder = mkdtempSync(path.join(tmpdir(), "colloquy-stage-"));
    shared.speech = writeSpeech(path.join(shared.folder, "speech.wav"));
    shared.noise = writeNoise(path.join(shared.folder, "noise.wav"));
    shared.backend = await Backend.start();
    if (scenes.some(({ options }) => options.models)) shared.withModels = await Backend.start(WITH_MODELS);
    if (scenes.some(({ options }) => options.ears)) shared.withEars = await Backend.start(WITH_EARS);
  });
  after(async () => {
    await shared.backend?.close();
    await shared.withModels?.close();
    await shared.withEars?.close();
    rmSync(shared.folder, { recursive: true, force: true });
  });

  const inEach = (kind, lanes) => BROWSERS.forEach((browser) => playIn(browser, scenesOf(kind, browser), lanes));
  const inTurn = (kind, lanes) => describe(kind, { concurrency: 1 }, () => inEach(kind, lanes));
  describe("side by side", { concurrency: 1 + 2 * BROWSERS.length }, () => {
    // In these nobody speaks into a microphone of it, so that one does for all.
    let sound;
    before(async () => {
      sound = await SoundCard.open();
    });
    after(() => sound.close());
    const lane = () => openLane(sound, () => {});
    inTurn("busy", [lane]);
    inEach("waits", [lane]);
    inEach("light", [lane, lane]);
  });
  const own = async () => {
    const sound = await SoundCard.open();
    return openLane(sound, () => sound.close());
  };
  describe("calm", { concurrency: BROWSERS.length }, () => inEach("calm", [own]));
  inTurn("alone", [own]);
}

/** Returns the scenes of a kind, or those of none, which are light, that are played in a browser. */
function scenesOf(kind, browser) {
  return scenes.filter(({ options, browsers }) => browsers.includes(browser) && (KINDS.find((each) => options[each]) ?? "light") === kind);
}

/**
 * Plays scenes in a browser, in their order, as many at a time as there are lanes, which it opens. Sound, browsers and this machine run in real
 * time, so a scene that fails is played once more, unless `COLLOQUY_TEST_RETRIES=0`; the end of the run names it.
 */
function playIn(browser, played, lanes) {
  describe(browser, { concurrency: lanes.length }, () => {
    const free = [];
    before(async () => {
      for (const open of lanes) free.push(await open());
    });
    after(() => Promise.all(free.map((lane) => lane.close())));
    for (const each of played) {
      test(each.name, async () => {
        const lane = free.pop();
        try {
          await playTwice(browser, lane, each);
        } finally {
          free.push(lane);
        }
      });
    }
  });
}

async function playTwice(browser, lane, each) {
  try {
    await perform(new Stage(browser, lane), each);
  } catch (error) {
    if (!PLAYS_AGAIN) throw error;
    const twice = `browser: played twice, since it failed once: ${each.name}, in ${browser}`;
    console.log(`${twice}: ${error.message}`);
    remark(twice);
    await perform(new Stage(browser, lane), each);
  }
}

/** Says something at the end of the run of all checks, where this is one. */
function remark(line) {
  const remarks = process.env.COLLOQUY_TEST_REMARKS;
  if (remarks) appendFileSync(remarks, `${line}\n`);
}

/** Returns what the scenes of a lane share: a sound card, and browsers that use it. */
function openLane(sound, closeSound) {
  const browsers = new BrowserPool(sound.env);
  const close = async () => {
    await browsers.close();
    await closeSound();
  };
  return { sound, browsers, close };
}

async function perform(stage, { name, options, play }) {
  const pressure = watchMachine();
  try {
    await within(options.patienceMs ?? PATIENCE_MS, name, stage.open(options).then(() => play(stage)));
    assert.deepEqual(await stage.page.uncaught(), [], "nobody in the page caught this");
  } catch (error) {
    stage.failed = true;
    const waited = `for ${Math.round(100 * pressure())} % of the time somebody waited for a processor`;
    error.message += `\n\n${await within(5_000, "the report", stage.report()).catch(String)}\n\n${waited}`;
    throw error;
  } finally {
    await stage.close();
  }
}

export class Stage {
  #servers = [];
  #browserName;
  #own;

  /** A stage for this browser, with what its scenes share: `sound` and `browsers`. */
  constructor(browserName, own) {
    this.#browserName = browserName;
    this.#own = own;
  }

  get browserName() {
    return this.#browserName;
  }

  async open(options) {
    const { character = "quiet", timeLimitSeconds = scaled(60), models, ears } = options;
    this.sound = options.sound ? await SoundCard.open() : this.#own.sound;
    const common = models ? shared.withModels : ears ? shared.withEars : shared.backend;
    const own = typeof options.backend === "function" ? options.backend(this.browserName) : options.backend;
    this.backend = own ? await Backend.start(own) : common;
    this.ownBackend = Boolean(options.backend);
    this.wire = options.wire && (await Wire.to(this.backend.url));
    this.deliveries = [];
    if (!options.console || options.demo) await this.#serveDemo(options, character, timeLimitSeconds);

    const special = options.sound ? { env: this.sound.env } : options.browser;
    this.browser = await this.#own.browsers.lend(this.#browserName, special);
    this.page = new DemoPage(this.browser, `${this.origin}/`);
    if (this.origin) await this.page.open();
  }

  /** Serves the demo page as a customer does. */
  async #serveDemo(options, character, timeLimitSeconds) {
    const webhookUrl = options.webhook && (await this.#receiver());

    /** Gets the settings of the customer's server, and the stage. */
    const createCall = options.customer?.createCall ?? createCallAtBackend;
    /** The settings of the customer's server; what is changed counts from the next request on. */
    this.customer = {
      backendUrl: this.wire ? this.wire.url : this.backend.url,
      apiKey: this.backend.apiKey,
      character: `${PARTNER}/${character}`,
      timeLimitSeconds,
      webhookUrl,
      ...options.customer,
      createCall: async (given) => {
        const call = await createCall(given, this);
        this.callId = call.id;
        return this.wire ? { ...call, signedUrl: this.wire.over(call.signedUrl) } : call;
      },
    };
    const server = customerServer(this.customer);
    this.origin = `http://localhost:${await this.#listen(server)}`;
    this.customer.publishableKey ??= await this.backend.publishableKey(this.origin);
  }

  /** Says the recorded words into the microphone `A` or `B`. */
  say(microphone) {
    return this.sound.say(shared.speech, microphone);
  }

  /** Makes a noise as long as the recorded words in the microphone `A` or `B`. */
  hiss(microphone) {
    return this.sound.say(shared.noise, microphone);
  }

  async #receiver() {
    const { certFile, keyFile } = this.backend.tls;
    const receiver = webhookReceiver({
      secret: this.backend.webhookSecret,
      tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) },
      onEvent: (event, headers) => this.deliveries.push({ event, headers }),
    });
    return `https://localhost:${await this.#listen(receiver)}/completed`;
  }

  async #listen(server) {
    this.#servers.push(server);
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    return server.address().port;
  }

  async report() {
    return [
      this.page ? await this.page.report() : "no page was opened",
      "backend:",
      this.backend?.program.tail() ?? "none was started",
    ].join("\n");
  }

  async close() {
    if (this.browser) await this.#own.browsers.takeBack(this.browser, this.failed);
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
    if (this.wire) this.wire.close();
    if (this.ownBackend) await this.backend.close();
    if (this.sound !== this.#own.sound) await this.sound?.close();
  }
}
