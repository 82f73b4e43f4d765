// The wasm and the worklet are in the module itself; the build puts them in place of the two names.

/* global WASM_BASE64, WORKLET_SOURCE */

// Not fetched from a data: URL, which connect-src would have to allow.
export const wasm = async () => {
  const bytes = Uint8Array.from(atob(WASM_BASE64), (letter) => letter.charCodeAt(0));
  return new Response(bytes, { headers: { "Content-Type": "application/wasm" } });
};

export const worklet = () => URL.createObjectURL(new Blob([WORKLET_SOURCE], { type: "text/javascript" }));

export const advice = "It is in the module, so nothing has to be served.";
