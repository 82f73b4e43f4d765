// The microphone's audio worklet: passes sound on, gives true silence on mute, and measures the level.
//
// It is a file of its own, loaded from the page's origin, because a strict Content-Security-Policy blocks the others.

/** How many levels a second are posted. */
const LEVELS_PER_SECOND = 20;

class ColloquyMicrophone extends AudioWorkletProcessor {
  #levels = false;
  #gain = 1;
  #target = 1;
  #closed = false;
  #sumOfSquares = 0;
  #samples = 0;

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      if (typeof data.muted === "boolean") this.#target = data.muted ? 0 : 1;
      if (typeof data.levels === "boolean") this.#levels = data.levels;
      if (data.closed) this.#closed = true;
    };
  }

  process([input], [output]) {
    const from = input?.[0];
    const to = output[0];
    // The gain reaches its target within this block, so that a mute does not click.
    const step = (this.#target - this.#gain) / to.length;
    for (let i = 0; i < to.length; i += 1) {
      this.#gain += step;
      const sample = from === undefined ? 0 : from[i] * this.#gain;
      to[i] = sample;
      this.#sumOfSquares += sample * sample;
    }
    this.#gain = this.#target;
    if (this.#levels) this.#measure(to.length);
    return !this.#closed;
  }

  #measure(samples) {
    this.#samples += samples;
    if (this.#samples < sampleRate / LEVELS_PER_SECOND) return;
    this.port.postMessage(Math.sqrt(this.#sumOfSquares / this.#samples));
    this.#sumOfSquares = 0;
    this.#samples = 0;
  }
}

registerProcessor("colloquy-microphone", ColloquyMicrophone);
