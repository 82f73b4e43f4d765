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
    this.#draw(this.#microphone, "--microphone", height(microphone));
    this.#draw(this.#speaker, "--speaker", height(speaker));
  }

  rest() {
    this.show({ microphone: 0, speaker: 0 });
  }

  #draw(meter, name, level) {
    meter.value = level;
    meter.style.setProperty("--level", level.toFixed(2));
    this.#orb.style.setProperty(name, level.toFixed(2));
  }
}

function height(level) {
  if (!(level > 0)) return 0;
  const decibels = 20 * Math.log10(level);
  return Math.min(1, Math.max(0, 1 - decibels / FLOOR_DB));
}
