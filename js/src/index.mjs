// The loader: what a page imports. Types and documentation for people are in index.d.ts.
//
// Importing does nothing, so it is safe on a server. The wasm is loaded once, by `init` or by the first manager.
// `files/` has one module for each way to publish the loader, which locates the wasm and the worklet.

import { CallManager as Core, bind, imports } from "#bindings";
import { advice, wasm, worklet } from "#files";

import { Listeners } from "./listeners.mjs";
import { CALL_ACTIVE } from "./call-active.mjs";
import { checkCallbacks, checkConfig, checkListener, refuse } from "./check.mjs";
import { CallError } from "./error.mjs";

let loading;
let workletUrl;
/** The options of the last `init`. */
let initOptions = {};

export { CallError };

export function init(options) {
  initOptions = options ?? initOptions;
  loading ??= start(initOptions).catch((cause) => {
    // The next call tries again, at the same place: a network may have come back.
    loading = undefined;
    const remedy = initOptions.wasmUrl ? "Check init({ wasmUrl })." : advice;
    throw new CallError(
      "LOAD_FAILED",
      `The SDK's wasm could not be loaded. ${remedy} A Content-Security-Policy needs 'wasm-unsafe-eval' in script-src.`,
      { cause },
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

/** The id in a signed URL, as the wasm finds it. */
const callIdOf = (signedUrl) => /\/v2\/calls\/[^/?#]+/.exec(signedUrl)?.[0] ?? null;

export class CallManager {
  #listeners;
  #config;
  #core;
  /** The call that waits for the wasm. */
  #waiting;
  /** Status and id of the last call, when it ended before the wasm was loaded or the manager is destroyed. */
  #ended;
  #muted = false;
  #destroyed = false;

  constructor(callbacks, config) {
    checkCallbacks(callbacks);
    checkConfig(config);
    this.#listeners = new Listeners(callbacks);
    this.#config = config;
    // So that the first call does not wait, and its audio starts within the visitor's click.
    if (typeof window !== "undefined") init().then(() => this.#createCore()).catch(() => {});
  }

  #createCore() {
    if (this.#core === undefined && !this.#destroyed) {
      // The core references both weakly, and this manager strongly, so that an unreferenced manager can be collected.
      this.#core = new Core(this.#listeners.target, this.#config, workletUrl);
      if (this.#muted) this.#core.mute(true);
    }
    return this.#core;
  }

  get callId() {
    return (this.#waiting ?? this.#ended ?? this.#core)?.callId ?? null;
  }

  get isMuted() {
    return this.#muted;
  }

  async handleCall2(partner, character, credential, customMetadata) {
    if (this.#destroyed) refuse("the manager was destroyed");
    if (this.#waiting) throw new CallError(...CALL_ACTIVE);
    let startReported = false;
    if (this.#core === undefined) {
      const callId = partner == null && character == null ? callIdOf(credential) : null;
      const waiting = await this.#load(callId);
      if (this.#waiting !== waiting) return;
      this.#waiting = undefined;
      startReported = true;
    }
    this.#ended = undefined;
    await this.#core.handleCall2(partner, character, credential, customMetadata, startReported);
  }

  /** Begins a call that must wait for the wasm, until the wasm is there or the call is over. */
  async #load(callId) {
    const waiting = { status: "completed", callId };
    const over = new Promise((resolve) => { waiting.end = resolve; });
    this.#waiting = waiting;
    // A page that is left ends its call, as it does later.
    const leave = () => this.hangUp();
    globalThis.addEventListener?.("pagehide", leave);
    this.#listeners.dispatch("onCallStart", { callId });
    const failed = ({ code, message, cause }) => {
      if (this.#waiting !== waiting) return;
      // For this call the error is fatal.
      const error = new CallError(code, message, { cause, fatal: true });
      waiting.status = "error";
      // `onHangUp` comes after both, even if they throw or hang up.
      this.#listeners.dispatch("onError", error);
      this.#listeners.dispatch("onCallError", error);
      this.#end("error");
    };
    await Promise.race([over, init().then(() => this.#createCore(), failed)]);
    globalThis.removeEventListener?.("pagehide", leave);
    return waiting;
  }

  /** Ends the call that waits for the wasm. */
  #end(reason) {
    const { status, callId, end } = this.#waiting;
    this.#waiting = undefined;
    this.#ended = { status, callId };
    this.#listeners.dispatch("onHangUp", reason);
    end();
  }

  hangUp() {
    if (this.#waiting?.status === "completed") this.#end("local");
    this.#core?.hangUp();
  }

  mute(isMuted) {
    this.#muted = Boolean(isMuted);
    this.#core?.mute(this.#muted);
  }

  on(name, listener) {
    checkListener(name, listener);
    this.#listeners.add(name, listener);
    this.#core?.listenersChanged();
    return this;
  }

  off(name, listener) {
    this.#listeners.remove(name, listener);
    this.#core?.listenersChanged();
    return this;
  }

  destroy() {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.hangUp();
    this.#ended = { status: this.getState(), callId: this.callId };
    const core = this.#core;
    this.#core = undefined;
    // Deferred, because `destroy` may have been called from within the wasm.
    if (core) queueMicrotask(() => core.free());
  }

  static async getAvailableDevices() {
    await init();
    return Core.getAvailableDevices();
  }

  static async preCallCheck(config) {
    checkConfig(config);
    await init();
    return Core.preCallCheck(config);
  }

  async startAudio() {
    await this.#core?.startAudio();
  }

  async changeDevices(microphoneId, speakerId) {
    await init();
    await this.#createCore()?.changeDevices(microphoneId, speakerId);
  }

  sendText(text) {
    return this.#core?.sendText(String(text)) ?? false;
  }

  getState() {
    if (this.#waiting) return "starting";
    return this.#ended?.status ?? this.#core?.getState() ?? "idle";
  }
}
