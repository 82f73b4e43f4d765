// What the page really hears and says: the audio energy that the browser's WebRTC statistics count, every 50 ms.
// `totalAudioEnergy` (W3C webrtc-stats) grows by the squared level of what was decoded and played, so a claim of the SDK
// or of the server cannot make it grow.

/** A level that speech exceeds and the noise of codecs does not. */
export const AUDIBLE = 0.01;

/** Put into the page before the call: keeps the peer connections that are made, and samples their statistics. */
function listen() {
  const peers = [];
  const samples = [];
  const Native = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Native {
    constructor(...given) {
      super(...given);
      peers.push(this);
    }
  };
  window.earSamples = samples;
  // The energy that was heard on each connection, in the order in which they were made.
  window.earEnergies = () => Promise.all(peers.map(async (peer) => {
    const heard = [...(await peer.getStats()).values()].find(({ type }) => type === "inbound-rtp");
    return heard?.totalAudioEnergy ?? 0;
  }));
  const sum = { heard: [0, 0], said: [0, 0] };
  setInterval(async () => {
    const peer = peers.at(-1);
    if (!peer || peer.connectionState === "closed") return;
    const report = await peer.getStats();
    const sample = { at: performance.now() };
    for (const entry of report.values()) {
      const way = { "inbound-rtp": "heard", "media-source": "said" }[entry.type];
      if (!way || entry.totalAudioEnergy === undefined) continue;
      const [energy, seconds] = sum[way];
      const length = entry.totalSamplesDuration - seconds;
      if (length > 0) sample[way] = Math.sqrt(Math.max(0, entry.totalAudioEnergy - energy) / length);
      sum[way] = [entry.totalAudioEnergy, entry.totalSamplesDuration];
    }
    samples.push(sample);
  }, 50);
}

export class Ears {
  #driver;

  constructor(driver) {
    this.#driver = driver;
  }

  /** Begins to listen; before the call is made. */
  async open() {
    await this.#driver.executeScript(`(${listen})()`);
  }

  /** All samples: `at` (the page's `performance.now()`), `heard` and `said` (levels, 0 to 1) where they are known. */
  samples() {
    return this.#driver.executeScript("return window.earSamples");
  }

  /** The page's clock. */
  now() {
    return this.#driver.executeScript("return performance.now()");
  }

  /** When something was audible after `since`, first and last, and for how many samples; `null` when nothing was. */
  async audible(way, since = 0, before = Infinity) {
    const samples = (await this.samples()).filter(({ at }) => at > since && at < before);
    const loud = samples.filter((sample) => sample[way] > AUDIBLE);
    return loud.length === 0 ? null : { first: loud[0].at, last: loud.at(-1).at, count: loud.length };
  }
}
