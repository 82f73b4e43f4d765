// The backend under test: the real program with a data folder of its own, everything embedded.

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import {
  administration, createCharacter, createPartner, createPublishableKey, createServerKey,
} from "../../../examples/prepare.mjs";
import { freePort, Program } from "./programs.mjs";
import { scaled, until } from "./waiting.mjs";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const BINARY = path.join(process.env.CARGO_TARGET_DIR ?? path.join(ROOT, "target"), "debug/colloquy");

export const PARTNER = "demo";

/** Characters for tests. What they know is small, and what they say first is known. */
const CHARACTERS = {
  /** Waits for the visitor. */
  quiet: {},
  /** The same, for calls that are looked for by their character. */
  limited: {},
  /** Says something short first. */
  greeter: { robot_name: "the greeter", greetings: ["Hello, this is {{ robot_name }}."] },
  /** Knows something from a document. */
  librarian: { rag_enabled: true, documents: [{ title: "Opening hours", text: "The museum opens at ten and closes at six." }] },
  /** Talks for about half a minute. */
  talker: {
    greetings: [
      "Let me tell you a long story about the sea. Every morning the fishermen row out before the sun is up. They listen to the wind and look at the clouds. When the nets are full, they turn around and sing on the way home. The children wait at the harbour and count the boats. In the evening there is soup for everybody. Then the lamps are lit, and the old people tell stories about storms.",
    ],
  },
};

/** The neural models of a talk, of those that `tests/run browser` gets: a server loads and measures all that it finds. */
const TALK = ["whisper-tiny.en", "piper-en_US-joe-medium", "silero-vad"];

function talkFolder() {
  const folder = mkdtempSync(path.join(tmpdir(), "colloquy-models-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const all = process.env.COLLOQUY_TEST_MODELS_DIR ?? "";
  for (const model of TALK) symlinkSync(path.join(all, model), path.join(folder, model));
  return folder;
}

/** Settings of a backend that finds neural models, which understand what a busy machine tears, too. */
export const WITH_MODELS = { COLLOQUY_MODELS_DIR: talkFolder() };

/** The same for scenes in which it does not matter who answers: a voice that takes nothing of the machine. */
export const WITH_EARS = { ...WITH_MODELS, COLLOQUY_SYNTHESIZER_MODEL: "espeak-ng" };

/** How long a backend takes to start at most: it measures its models. */
const START_PATIENCE_MS = 60_000;

export class Backend {
  #folder = mkdtempSync(path.join(tmpdir(), "colloquy-backend-"));
  #settings;

  /** Starts the program with these `COLLOQUY_*` settings besides the usual ones. */
  static async start(settings = {}) {
    const backend = new Backend();
    const port = await freePort();
    const folder = backend.#folder;
    execFileSync(path.join(ROOT, "examples/certificate"), [path.join(folder, "tls")]);
    backend.url = `http://127.0.0.1:${port}`;
    backend.tls = { certFile: path.join(folder, "tls/cert.pem"), keyFile: path.join(folder, "tls/key.pem") };
    backend.webhookSecret = `whsec_${randomBytes(24).toString("base64")}`;
    const adminKey = randomBytes(24).toString("hex");
    backend.#settings = {
      COLLOQUY_HTTP_LISTEN: `127.0.0.1:${port}`,
      COLLOQUY_HTTP_LAME_DUCK_SECONDS: "0",
      COLLOQUY_HTTP_DRAIN_SECONDS: "1",
      // A page that is gone without a word is given up later than a test waits for the end of its call, on a slow machine, too.
      COLLOQUY_CALLS_RECONNECT_SECONDS: String(scaled(30)),
      COLLOQUY_STORE_DIR: path.join(folder, "data"),
      COLLOQUY_ADMIN_KEY: adminKey,
      // The report of a failed test has room for what happened in calls, not for each request.
      COLLOQUY_LOG_FILTER: "info,sqlx=warn,rtc=error,webrtc=error,colloquy_http::observe=warn",
      COLLOQUY_WEBHOOKS_SECRET: backend.webhookSecret,
      // The receiver of the tests is on this machine, with a certificate of an authority that nobody else knows.
      COLLOQUY_FETCH_ALLOW_PRIVATE: "true",
      COLLOQUY_FETCH_CA_FILE: path.join(folder, "tls/ca.pem"),
      // It takes a second of a processor to say that it is there.
      COLLOQUY_KNOWLEDGE_YT_DLP: "/no/such/program",
      ...settings,
    };
    backend.#run();
    try {
      await backend.#answers().catch((error) => {
        throw new Error(`${error.message}: ${BINARY}\n${backend.program.tail()}`);
      });
      backend.adminKey = adminKey;
      backend.admin = administration(backend.url, adminKey);
      await createPartner(backend.admin, PARTNER);
      for (const [name, parameters] of Object.entries(CHARACTERS)) {
        const personality = "You are a friendly helper in a test.";
        await createCharacter(backend.admin, PARTNER, { name, personality, parameters: { name, ...parameters } });
      }
      backend.apiKey = await createServerKey(backend.admin, PARTNER);
      backend.api = administration(backend.url, backend.apiKey);
    } catch (error) {
      await backend.close();
      throw error;
    }
    return backend;
  }

  #run() {
    this.program = new Program(BINARY, ["serve"], this.#settings);
  }

  /** Starts the program again, which has ended, with the same settings and data. */
  async startAgain() {
    this.#run();
    await this.#answers();
  }

  /** Waits until the program answers, as long as it runs. */
  #answers() {
    return until("the backend answers", async () => {
      if (!this.program.running) throw new Error("the backend ended");
      const answer = await fetch(`${this.url}/health`).catch(() => null);
      return answer?.ok;
    }, { withinMs: START_PATIENCE_MS, everyMs: 50 });
  }

  publishableKey(origin) {
    return createPublishableKey(this.admin, PARTNER, [origin]);
  }

  /** The status of a call, the whole answer. */
  async status(id) {
    return (await this.api("GET", id)).content;
  }

  /** The stored transcript of a call that has ended. */
  async transcript(id) {
    return (await this.api("GET", `${id}/transcript`)).content.data;
  }

  async close() {
    await this.program.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
