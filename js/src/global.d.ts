/** Loaded with a plain script tag, the SDK is the global `Colloquy`. */
declare global {
  var Colloquy: Pick<typeof import("./index.js"), "CallError" | "CallManager" | "init">;
}

export {};
