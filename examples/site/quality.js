// The quality of the call as the SDK measures it: three bars and a few words.

const WORDS = { good: "Good", fair: "Fair", poor: "Poor" };

export class Quality {
  #box;
  #words;

  constructor(box, words) {
    this.#box = box;
    this.#words = words;
  }

  show(stats) {
    const { quality, roundTripMs, lossSent, lossReceived } = stats;
    const loss = Math.max(lossSent ?? 0, lossReceived);
    const words = [
      WORDS[quality],
      // It is not known from the start.
      ...(roundTripMs === null ? [] : [milliseconds(roundTripMs)]),
      `${Math.round(loss * 100)} % loss`,
      ...path(stats),
    ];
    this.#box.dataset.quality = quality;
    this.#words.textContent = words.join(" · ");
    this.#box.hidden = false;
  }

  hide() {
    this.#box.hidden = true;
  }
}

export function milliseconds(ms) {
  return ms < 1 ? "less than 1 ms" : `${Math.round(ms)} ms`;
}

/** How media flows, in words; none until the browser tells. */
export function path({ candidateType, protocol }) {
  if (candidateType === null) return [];
  const way = candidateType === "relay" ? "through a relay" : "direct";
  return [protocol === null ? way : `${way}, ${protocol.toUpperCase()}`];
}
