// The loader: what a page imports. Types and documentation for people are in index.d.ts.
//
// Importing does nothing, so it is safe on a server. The wasm is loaded once, by `init` or by the first manager.
// Where it is, is in `files/`: one module for each way to publish the loader.

import { CallManager as Core, bind, imports } from "#bindings";
import { advice, wasm, worklet } from "#files";

const REQUIRED_CALLBACKS = ["onCallStart", "onCallError", "onHangUp", "onStatusUpdate"];

let loading;
let workletUrl;

export class CallError extends Error {
  constructor(code, message, { fatal = false, ...options } = {}) {
    super(message, options);
    this.name = "CallError";
    this.code = code;
    this.fatal = fatal;
  }

  // The wasm makes plain errors with the same name and code, so that it needs no class from here.
  static [Symbol.hasInstance](value) {
    return value instanceof Error && value.name === "CallError";
  }
}

export function init(options = {}) {
  loading ??= start(options).catch((cause) => {
    // The next call tries again: a network may have come back.
    loading = undefined;
    const remedy = options.wasmUrl ? "Check init({ wasmUrl })." : advice;
    throw new CallError(
      "LOAD_FAILED",
      `The SDK's wasm could not be loaded. ${remedy} A Content-Security-Policy needs 'wasm-unsafe-eval' in script-src.`,
      { cause, fatal: true },
    );
  });
  return loading;
}

async function start(options) {
  workletUrl = String(options.workletUrl ?? worklet());
  const open = options.wasmUrl ? () => fetch(options.wasmUrl) : wasm;
  let loaded;
  try {
    loaded = await WebAssembly.instantiateStreaming(open(), imports());
  } catch {
    // Browsers do not compile while it arrives when the server does not name the type of the file.
    loaded = await WebAssembly.instantiate(await (await open()).arrayBuffer(), imports());
  }
  bind(loaded.instance, loaded.module);
}

function check(callbacks, config) {
  if (typeof callbacks !== "object" || callbacks === null) throw invalid("callbacks must be an object");
  for (const name of REQUIRED_CALLBACKS) {
    if (typeof callbacks[name] !== "function") throw invalid(`callbacks.${name} must be a function`);
  }
  if (config != null && typeof config !== "object") throw invalid("config must be an object");
}

const invalid = (what) => new CallError("INVALID_ARGUMENT", `An argument is not valid. (${what})`);

function fire(callback, argument) {
  try {
    callback(argument);
  } catch (thrown) {
    console.error("colloquy: a callback threw", thrown);
  }
}

export class CallManager {
  #callbacks;
  #config;
  #core;
  /** The call that waits for the wasm, and whether it was hung up meanwhile. */
  #waiting;
  #muted = false;

  constructor(callbacks, config) {
    check(callbacks, config);
    this.#callbacks = callbacks;
    this.#config = config;
    // So that the first call does not wait, and its audio starts within the visitor's click.
    if (typeof window !== "undefined") init().then(() => this.#make()).catch(() => {});
  }

  #make() {
    if (this.#core === undefined) {
      this.#core = new Core(this.#callbacks, this.#config, workletUrl);
      if (this.#muted) this.#core.mute(true);
    }
    return this.#core;
  }

  async handleCall2(partner, character, credential, customMetadata) {
    const waiting = this.#core === undefined ? await this.#load() : undefined;
    if (waiting?.failed) return;
    const started = this.#core.handleCall2(partner, character, credential, customMetadata);
    if (waiting?.hungUp) this.#core.hangUp();
    await started;
  }

  /** Loads the wasm for a call. A call that cannot even be loaded has its start, its error and its end. */
  async #load() {
    if (this.#waiting) throw new CallError("CALL_ACTIVE", "A call is active. Call hangUp() before starting another.");
    const waiting = { hungUp: false, failed: false };
    this.#waiting = waiting;
    try {
      await init();
      this.#make();
    } catch (error) {
      waiting.failed = true;
      this.#waiting = undefined;
      fire(this.#callbacks.onCallStart);
      if (this.#callbacks.onError) fire(this.#callbacks.onError, error);
      fire(this.#callbacks.onCallError, error);
      fire(this.#callbacks.onHangUp);
    } finally {
      this.#waiting = undefined;
    }
    return waiting;
  }

  hangUp() {
    if (this.#waiting) this.#waiting.hungUp = true;
    this.#core?.hangUp();
  }

  mute(isMuted) {
    this.#muted = Boolean(isMuted);
    this.#core?.mute(this.#muted);
  }

  static async getAvailableDevices() {
    await init();
    return Core.getAvailableDevices();
  }

  static async preCallCheck(config) {
    await init();
    return Core.preCallCheck(config);
  }

  async startAudio() {
    await this.#core?.startAudio();
  }

  async changeDevices(microphoneId, speakerId) {
    await init();
    await this.#make().changeDevices(microphoneId, speakerId);
  }

  sendText(text) {
    return this.#core?.sendText(String(text)) ?? false;
  }

  getState() {
    return this.#core?.getState() ?? (this.#waiting ? "starting" : "idle");
  }
}
