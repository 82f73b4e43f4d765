// Fits the glue that wasm-bindgen generates to the optimized wasm and to the loader.

/** What is in place of what: every browser that the README names can do without, or nothing uses it. */
const REPLACED = [
  // The loader has its own way to load the wasm.
  [/^export \{ initSync, .*\};$/m, "export { __wbg_finalize_init as bind, __wbg_get_imports as imports };"],
  [/\(typeof FinalizationRegistry === 'undefined'\)\s*\? .*\s*: new/g, "new"],
  [/if \(!\('encodeInto' in cachedTextEncoder\)\) \{.*?\n\}\n/s, ""],
  [/if \(realloc === undefined\) \{.*?\n {4}\}\n/s, ""],
  // Safari's decoder ends after 2 GiB of text, which no page reads in calls.
  [/numBytesDecoded \+= bytes\.length;\s*if \(.*?\n {4}\}\n/s, ""],
  [/^if \(Symbol\.dispose\).*$/m, ""],
  [/ {4}__destroy_into_raw\(\) \{.*?\n {4}\}\n {4}free\(\) \{.*?\n {4}\}\n/s, ""],
  // One short function for each import, where some have two.
  [/function\(\) \{ return handleError\(function \((.*?)\) \{(.*?)\}, arguments\); \}/gs, "caught(($1) => {$2})"],
  [/: function\((.*?)\) \{/g, ": ($1) => {"],
  [/function handleError\(f, args\) \{.*?\n\}\n/s, `
    const caught = (f) => (...args) => {
      try {
        return f(...args);
      } catch (e) {
        wasm.__wbindgen_exn_store(addToExternrefTable0(e));
      }
    };
  `],
];

/** `renamed` is what wasm-opt prints about the names of imports and exports. */
export function fit(glue, renamed) {
  for (const [pattern, text] of REPLACED) {
    const fitted = glue.replace(pattern, text);
    if (fitted === glue) throw new Error(`${pattern} is not in the glue of wasm-bindgen`);
    glue = fitted;
  }
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
