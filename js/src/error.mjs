// The one class of errors; its codes are in index.d.ts.

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
