// The wasm and the worklet lie beside the script of a plain script tag.

// Known only while the script runs for the first time. A bundler's module has no such script.
const script = globalThis.document?.currentScript?.src;

const beside = (name) => new URL(name, script ?? document.baseURI);

export const wasm = () => fetch(beside("colloquy_sdk_bg.wasm"));

export const worklet = () => beside("worklet.js");

export const advice =
  "Serve colloquy_sdk_bg.wasm beside colloquy.global.js, or name its URL with Colloquy.init({ wasmUrl }).";
