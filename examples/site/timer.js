// How long the call has lasted.

export class Timer {
  #element;
  #startedAt = 0;
  #interval = 0;

  constructor(element) {
    this.#element = element;
  }

  start() {
    this.stop();
    this.#startedAt = performance.now();
    this.#show();
    this.#element.hidden = false;
    this.#interval = setInterval(() => this.#show(), 250);
  }

  /** Stops and leaves the last time to be read. */
  stop() {
    clearInterval(this.#interval);
  }

  #show() {
    const seconds = Math.floor((performance.now() - this.#startedAt) / 1000);
    const padded = String(seconds % 60).padStart(2, "0");
    this.#element.textContent = `${Math.floor(seconds / 60)}:${padded}`;
  }
}
