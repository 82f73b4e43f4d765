// The wasm and the worklet lie beside the module. Bundlers find them by these very expressions.

export const wasm = () => fetch(new URL("./colloquy_sdk_bg.wasm", import.meta.url));

export const worklet = () => new URL("./worklet.js", import.meta.url);

export const advice =
  "Serve colloquy_sdk_bg.wasm beside the SDK's module, name its URL with init({ wasmUrl }), or import "
  + "@colloquy/sdk/inline; Vite 6 and 7 need @colloquy/sdk in optimizeDeps.exclude.";
