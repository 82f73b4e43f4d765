// The callbacks that a manager was constructed with, and the listeners that were added with `on`.

function attempt(callback) {
  try {
    callback();
  } catch (thrown) {
    console.error("colloquy: a callback threw", thrown);
  }
}

export class Listeners {
  #callbacks;
  #listeners = new Map();

  /**
   * The callbacks object for the wasm: it has a function for every event with a callback or listener. It does not reference
   * the manager, so that a running call can hold it after the page has dropped its manager.
   */
  target;

  constructor(callbacks) {
    this.#callbacks = callbacks;
    this.target = new Proxy({}, {
      get: (_, name) => (this.#hasListener(name) ? (...args) => this.dispatch(name, ...args) : undefined),
    });
  }

  #hasListener(name) {
    return typeof this.#callbacks[name] === "function" || this.#listeners.has(name);
  }

  dispatch(name, ...args) {
    attempt(() => this.#callbacks[name]?.(...args));
    for (const listener of [...(this.#listeners.get(name) ?? [])]) attempt(() => listener(...args));
  }

  add(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
  }

  remove(name, listener) {
    const listeners = this.#listeners.get(name);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#listeners.delete(name);
  }
}
