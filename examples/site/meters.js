// Level meters. Loudness is heard in decibels, so that is what they show: from -60 dB to full scale.

const FLOOR_DB = -60;

export class Meters {
  #microphone;
  #speaker;
  #orb;

  constructor(microphone, speaker, orb) {
    this.#microphone = microphone;
    this.#speaker = speaker;
    this.#orb = orb;
  }

  /** Shows the SDK's levels, each the root mean square of the samples from 0 to 1. */
  show({ microphone, speaker }) {
    this.#microphone.value = height(microphone);
    this.#speaker.value = height(speaker);
    this.#orb.style.setProperty("--microphone", this.#microphone.value.toFixed(2));
    this.#orb.style.setProperty("--speaker", this.#speaker.value.toFixed(2));
  }

  rest() {
    this.show({ microphone: 0, speaker: 0 });
  }
}

function height(level) {
  if (!(level > 0)) return 0;
  const decibels = 20 * Math.log10(level);
  return Math.min(1, Math.max(0, 1 - decibels / FLOOR_DB));
}
