// A backend inside the page: `fetch` and `WebSocket` are replaced, and the other end of the call is a peer connection
// of the same page, so that a whole call really runs.

const real = {
  fetch: window.fetch,
  WebSocket: window.WebSocket,
  getUserMedia: navigator.mediaDevices.getUserMedia,
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Backend {
  #log = [];
  #sockets = [];
  #peer;
  #frames = [];
  #requests = [];
  #captured = [];
  #speaker;

  constructor() {
    const backend = this;
    window.fetch = (url, init) => this.#fetch(url, init);
    window.WebSocket = class {
      constructor(url) {
        this.url = url;
        backend.#sockets.push(this);
        setTimeout(() => this.onopen?.(), 5);
      }
      send(frame) {
        backend.#frames.push(frame);
        setTimeout(() => backend.#received(this, JSON.parse(frame)), 1);
      }
      close(code) {
        this.closed = code;
      }
    };
    navigator.mediaDevices.getUserMedia = async (constraints) => {
      const stream = await real.getUserMedia.call(navigator.mediaDevices, constraints);
      this.#captured.push(...stream.getTracks());
      return stream;
    };
  }

  uninstall() {
    window.fetch = real.fetch;
    window.WebSocket = real.WebSocket;
    navigator.mediaDevices.getUserMedia = real.getUserMedia;
    this.#peer?.close();
  }

  /** The status that the next requests get. */
  status = 200;

  #fetch(url, init) {
    if (!String(url).endsWith("/v2/calls")) return real.fetch.call(window, url, init);
    this.#requests.push({ url, key: init.headers.get("X-Api-Key"), body: JSON.parse(init.body) });
    const body =
      this.status === 200
        ? { data: { id: "/v2/calls/1", signedUrl: "wss://calls.invalid/v2/calls/1/session" } }
        : { error: { code: "UNKNOWN", message: "refused" } };
    return Promise.resolve(new Response(JSON.stringify(body), { status: this.status }));
  }

  refuse(status) {
    this.status = status;
  }

  refuseMicrophone(name) {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("refused", name));
  }

  async #received(socket, message) {
    const say = (answer) => this.#deliver(socket, answer);
    switch (message.type) {
      case "hello":
        if (message.resume === undefined) {
          this.#peer?.close();
          this.#peer = undefined;
        }
        say({
          type: "welcome", call_id: "/v2/calls/1", character: "Guide", ice_servers: [], resume: "token",
          time_limit_seconds: 600, heartbeat_seconds: 5,
        });
        break;
      case "offer": {
        if (this.#peer === undefined) this.#connect();
        await this.#peer.setRemoteDescription({ type: "offer", sdp: message.sdp });
        await this.#peer.setLocalDescription(await this.#peer.createAnswer());
        say({ type: "answer", sdp: this.#peer.localDescription.sdp });
        break;
      }
      case "candidate":
        if (message.candidate !== null) {
          await this.#peer.addIceCandidate({
            candidate: message.candidate, sdpMid: message.sdp_mid, sdpMLineIndex: message.sdp_m_line_index,
          });
        }
        break;
      case "ping":
        say({ type: "pong", t: message.t });
        break;
    }
  }

  #connect() {
    const peer = new RTCPeerConnection();
    this.#peer = peer;
    peer.onicecandidate = ({ candidate }) =>
      this.#deliver(this.#sockets.at(-1), {
        type: "candidate",
        candidate: candidate?.candidate || null,
        sdp_mid: candidate?.sdpMid,
        sdp_m_line_index: candidate?.sdpMLineIndex,
      });
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === "connected") this.say('{"type":"status","state":"ongoing"}');
    };
    peer.ontrack = ({ track }) => {
      // Sound that nobody plays is not measured.
      this.#speaker = new Audio();
      this.#speaker.srcObject = new MediaStream([track]);
      this.#speaker.play().catch(() => {});
    };
  }

  #deliver(socket, message) {
    setTimeout(() => socket.onmessage?.(new MessageEvent("message", { data: JSON.stringify(message) })), 1);
  }

  /** Sends a frame to the client. */
  say(frame) {
    this.#deliver(this.#sockets.at(-1), JSON.parse(frame));
  }

  /** Cuts the connection without a goodbye. */
  cut() {
    this.#sockets.at(-1).onclose?.(new CloseEvent("close", { code: 1006 }));
  }

  callbacks(throwing) {
    const hear = (name) => (argument) => {
      const told = argument instanceof Error ? `${argument.name}:${argument.code}` : JSON.stringify(argument);
      this.#log.push(argument === undefined ? name : `${name} ${told}`);
      if (throwing) throw new Error(`${name} throws`);
    };
    const names = [
      "onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onCallStarting", "onConnected", "onUserInfo",
      "onRagInfo", "onTranscript", "onAgentStateChange",
    ];
    return Object.fromEntries(names.map((name) => [name, hear(name)]));
  }

  log() {
    return this.#log.join("\n");
  }

  frames() {
    return this.#frames.map((frame) => JSON.parse(frame).type).join(" ");
  }

  lastFrame() {
    return this.#frames.at(-1);
  }

  request() {
    return JSON.stringify(this.#requests[0]);
  }

  /** Whether every microphone track has ended and every socket is closed. */
  isReleased() {
    return this.#captured.every((track) => track.readyState === "ended")
      && this.#sockets.every((socket) => socket.closed === 1000);
  }

  captures() {
    return this.#captured.length;
  }

  /** Waits until the log has the text. */
  async waitFor(text) {
    for (let i = 0; i < 200; i += 1) {
      if (this.log().includes(text)) return;
      await sleep(50);
    }
    throw new Error(`no ${text} in:\n${this.log()}`);
  }

  /** Waits until the client is heard: the first sound takes as long as devices and encoders need to start. */
  async hears() {
    const before = await this.#totalEnergy();
    for (let i = 0; i < 100; i += 1) {
      await sleep(100);
      if ((await this.#totalEnergy()) - before > 1e-5) return;
    }
    throw new Error("nothing is heard");
  }

  /** The sound energy that arrives from the client within a second and a half. */
  async energy() {
    const before = await this.#totalEnergy();
    await sleep(1500);
    return (await this.#totalEnergy()) - before;
  }

  async #totalEnergy() {
    for (const report of (await this.#peer.getStats()).values()) {
      if (report.type === "inbound-rtp") return report.totalAudioEnergy;
    }
    return 0;
  }
}

export function wait(ms) {
  return sleep(ms);
}

/** A URL of the worklet; a page under a strict policy would use its own origin instead. */
export function scriptUrl(source) {
  return URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
}
