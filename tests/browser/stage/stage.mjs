// The stage of a test: shared sound card, backend and browsers, a customer's server and a tab of its own. A
// failure says what the page showed, what the browser's console said and what the backend logged last.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";

import { createCallAtBackend, customerServer } from "../../../examples/server.mjs";
import { webhookReceiver } from "../../../examples/webhook.mjs";
import { Backend, PARTNER } from "./backend.mjs";
import { BROWSERS, BrowserPool } from "./browsers.mjs";
import { DemoPage } from "./demo.mjs";
import { SoundCard } from "./sound.mjs";
import { writeNoise, writeSpeech } from "./speech.mjs";
import { within } from "./waiting.mjs";
import { Wire } from "./wire.mjs";

const PATIENCE_MS = 55_000;

const shared = {};
let isShared = false;

/** Opens what the tests of all files in this process share. Call it once in each file, at the top. */
export function sharedStage() {
  if (isShared) return;
  isShared = true;
  before(async () => {
    shared.folder = mkdtempSync(path.join(tmpdir(), "colloquy-stage-"));
    shared.speech = writeSpeech(path.join(shared.folder, "speech.wav"));
    shared.noise = writeNoise(path.join(shared.folder, "noise.wav"));
    shared.sound = await SoundCard.open();
    shared.backend = await Backend.start();
    shared.browsers = new BrowserPool(shared.sound.env);
  });
  after(async () => {
    await shared.browsers?.close();
    await shared.backend?.close();
    await shared.sound?.close();
    rmSync(shared.folder, { recursive: true, force: true });
  });
}

/**
 * A test in every browser.
 *
 * @param {string} name
 * @param {object} options
 * @param {string} [options.character] - Of the test characters; `quiet` waits for the visitor.
 * @param {number} [options.timeLimitSeconds]
 * @param {boolean} [options.webhook] - Whether the call has a completion webhook.
 * @param {object} [options.customer] - Other settings for the customer's server.
 * @param {boolean} [options.wire] - Whether the page reaches the backend over a wire that the test can cut.
 * @param {Record<string, string>} [options.backend] - Settings of a backend for this test alone.
 * @param {boolean} [options.sound] - Whether the test has a sound card of its own, which it may take apart.
 * @param {object} [options.browser] - Other options, `phone` or `dark` or none, for a browser of this test alone.
 * @param {(stage: Stage) => Promise<void>} play
 */
export function scene(name, options, play) {
  for (const browser of BROWSERS) {
    test(`${browser}: ${name}`, async () => {
      const stage = new Stage();
      try {
        await within(PATIENCE_MS, name, stage.open(browser, options).then(() => play(stage)));
      } catch (error) {
        stage.failed = true;
        error.message += `\n\n${await within(5_000, "the report", stage.report()).catch(String)}`;
        throw error;
      } finally {
        await stage.close();
      }
    });
  }
}

export class Stage {
  #servers = [];

  async open(browserName, options) {
    const { character = "quiet", timeLimitSeconds = 60 } = options;
    this.sound = options.sound ? await SoundCard.open() : shared.sound;
    this.backend = options.backend ? await Backend.start(options.backend) : shared.backend;
    this.ownBackend = Boolean(options.backend);
    this.wire = options.wire && (await Wire.to(this.backend.url));
    this.deliveries = [];
    const webhookUrl = options.webhook && (await this.#receiver());

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
        const call = await createCall(given, this.backend);
        this.callId = call.id;
        return this.wire ? { ...call, signedUrl: this.wire.over(call.signedUrl) } : call;
      },
    };
    const server = customerServer(this.customer);
    this.origin = `http://localhost:${await this.#listen(server)}`;
    this.customer.publishableKey ??= await this.backend.publishableKey(this.origin);

    const own = options.sound ? { env: this.sound.env } : options.browser;
    this.browser = await shared.browsers.lend(browserName, own);
    this.page = new DemoPage(this.browser, `${this.origin}/`);
    await this.page.open();
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
    if (this.browser) await shared.browsers.takeBack(this.browser, this.failed);
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
    if (this.wire) this.wire.close();
    if (this.ownBackend) await this.backend.close();
    if (this.sound !== shared.sound) await this.sound?.close();
  }
}
