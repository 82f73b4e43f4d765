// Fits the glue that wasm-bindgen generates to the optimized wasm, whose names are short, and to the loader.

/** `renamed` is what wasm-opt prints about the names of imports and exports. */
export function fit(glue, renamed) {
  // The loader has its own way to load the wasm.
  glue = rename(glue, "export { initSync, __wbg_init as default };", "export { __wbg_finalize_init as bind, __wbg_get_imports as imports };");
  for (const [, name, short] of renamed.imports) glue = rename(glue, `${name}:`, `${short}:`);
  for (const [name, short] of renamed.exports) glue = rename(glue, `wasm.${name}`, `wasm.${short}`);
  return rename(glue, '"./colloquy_sdk_bg.js":', "a:");
}

/** Replaces a name where it ends as a whole, and insists that it is there. */
function rename(text, from, to) {
  const pattern = new RegExp(`${from.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w$])`, "g");
  const replaced = text.replace(pattern, () => to);
  // Some exports are for threads and destructors that the glue does not name.
  if (replaced === text && from.endsWith(":")) throw new Error(`${from} is not in the glue of wasm-bindgen`);
  return replaced;
}
