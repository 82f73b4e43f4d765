// The loader: what a page imports. Types and documentation for people are in index.d.ts.
//
// Importing does nothing, so it is safe on a server. The wasm is loaded once, by `init` or by the first manager.
// Where it is, is in `files/`: one module for each way to publish the loader.

import { CallManager as Core, bind, imports } from "#bindings";
import { advice, wasm, worklet } from "#files";

import { CALL_ACTIVE } from "./call-active.mjs";
import { checkCallbacks, checkConfig } from "./check.mjs";
import { CallError } from "./error.mjs";

let loading;
let workletUrl;
/** Where the page said that the files are. */
let given = {};

export { CallError };

export function init(options) {
  given = options ?? given;
  loading ??= start(given).catch((cause) => {
    // The next call tries again, at the same place: a network may have come back.
    loading = undefined;
    const remedy = given.wasmUrl ? "Check init({ wasmUrl })." : advice;
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

export class CallManager {
  #callbacks;
  #config;
  #core;
  /** The call that waits for the wasm. */
  #waiting;
  /** How the last call ended, when it never got to the wasm. */
  #ended;
  #muted = false;

  constructor(callbacks, config) {
    checkCallbacks(callbacks);
    checkConfig(config);
    this.#callbacks = callbacks;
    this.#config = config;
    // So that the first call does not wait, and its audio starts within the visitor's click.
    if (typeof window !== "undefined") init().then(() => this.#make()).catch(() => {});
  }

  #make() {
    if (this.#core === undefined) {
      // It holds the two weakly: whoever has the manager holds them, and one that nobody has can be collected.
      this.#core = new Core(this.#callbacks, this.#config, workletUrl);
      if (this.#muted) this.#core.mute(true);
    }
    return this.#core;
  }

  async handleCall2(partner, character, credential, customMetadata) {
    if (this.#waiting) throw new CallError(...CALL_ACTIVE);
    let told = false;
    if (this.#core === undefined) {
      const waiting = await this.#load();
      if (this.#waiting !== waiting) return;
      this.#waiting = undefined;
      told = true;
    }
    this.#ended = undefined;
    await this.#core.handleCall2(partner, character, credential, customMetadata, told);
  }

  /** Tells of what happens before the wasm is there. */
  #fire(name, ...given) {
    try {
      this.#callbacks[name]?.(...given);
    } catch (thrown) {
      console.error("colloquy: a callback threw", thrown);
    }
  }

  /** Begins a call that must wait for the wasm, until the wasm is there or the call is over. */
  async #load() {
    const waiting = { status: "completed" };
    const over = new Promise((resolve) => { waiting.end = resolve; });
    this.#waiting = waiting;
    // A page that is left ends its call, as it does later.
    const leave = () => this.hangUp();
    globalThis.addEventListener?.("pagehide", leave);
    this.#fire("onCallStart");
    const failed = ({ code, message, cause }) => {
      if (this.#waiting !== waiting) return;
      // It ends this call, whatever else it is for others.
      const error = new CallError(code, message, { cause, fatal: true });
      waiting.status = "error";
      // The end comes after both, whatever they do.
      this.#fire("onError", error);
      this.#fire("onCallError", error);
      this.#end();
    };
    await Promise.race([over, init().then(() => this.#make(), failed)]);
    globalThis.removeEventListener?.("pagehide", leave);
    return waiting;
  }

  /** Ends the call that waits for the wasm. */
  #end() {
    const { status, end } = this.#waiting;
    this.#waiting = undefined;
    this.#ended = status;
    this.#fire("onHangUp");
    end();
  }

  hangUp() {
    if (this.#waiting?.status === "completed") this.#end();
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
    checkConfig(config);
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
    if (this.#waiting) return "starting";
    return this.#ended ?? this.#core?.getState() ?? "idle";
  }
}
