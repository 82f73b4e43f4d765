// A backend inside the page: `fetch` and `WebSocket` are replaced, and the other end of the call is a peer connection
// of the same page, so that a whole call really runs.

const real = {
  setTimeout: window.setTimeout,
  clearTimeout: window.clearTimeout,
  fetch: window.fetch,
  WebSocket: window.WebSocket,
  createMediaStreamDestination: AudioContext.prototype.createMediaStreamDestination,
  resume: AudioContext.prototype.resume,
  addModule: AudioWorklet.prototype.addModule,
  addTransceiver: RTCPeerConnection.prototype.addTransceiver,
  getStats: RTCPeerConnection.prototype.getStats,
  getUserMedia: navigator.mediaDevices.getUserMedia,
  play: HTMLMediaElement.prototype.play,
  setSinkId: HTMLMediaElement.prototype.setSinkId,
};

/** What nobody caught. Vite's client, which a test's development server has nothing to tell, says that too. */
const uncaught = [];
for (const name of ["error", "unhandledrejection"]) {
  window.addEventListener(name, ({ reason, message }) => {
    const what = `${name}: ${reason ?? message} ${reason?.stack ?? ""}`;
    if (!what.includes("/@vite/client")) uncaught.push(what);
  });
}

const sleep = (ms) => new Promise((resolve) => real.setTimeout.call(window, resolve, ms));

/** Timers shorter than this, in milliseconds, are let run out. */
const SHORT_MS = 500;

export class Backend {
  #log = [];
  #sockets = [];
  #peer;
  /** The fingerprint of the client's connection that `#peer` is for. */
  #fingerprint;
  /** How many of the client's connections come to nothing. */
  #deaf = 0;
  #isDeaf = false;
  /** What the callbacks were given last whose arguments are not in the log. */
  #given = {};
  #frames = [];
  #requests = [];
  #captured = [];
  /** The SDK's long timers that run. */
  #timers = new Set();
  #constraints = [];
  #microphoneDelay = 0;
  #contexts = [];
  /** The SDK's contexts, also those that have no graph. */
  #opened = [];
  #configuration;
  #sinks = [];
  #sessionTypes = [];
  #level = 0;
  #locks = [];
  #element;
  #stats;
  #style;
  #probe;
  #voice;
  #speaker;
  /** The element that plays the character's voice. */
  #played;
  /** The SDK's listeners for devices that change. */
  #listeners = new Set();
  /** What a screen reader was given to say. */
  #said = [];
  #openDelay = 5;
  /** How often the SDK asked for statistics. */
  #measured = 0;
  /** How many times faster than real the SDK's timers run. */
  #hurry = 1;
  /** How the backend fails a check, if it does. */
  #failing;
  /** How the next checks are refused. */
  #refusals = [];
  #refusedAt = 0;

  constructor() {
    const backend = this;
    window.setTimeout = (handler, ms, ...given) => {
      const id = real.setTimeout.call(window, (...told) => {
        this.#timers.delete(id);
        handler(...told);
      }, ms / this.#hurry, ...given);
      if (ms >= SHORT_MS) this.#timers.add(id);
      return id;
    };
    window.clearTimeout = (id) => {
      this.#timers.delete(id);
      real.clearTimeout.call(window, id);
    };
    window.fetch = (url, init) => this.#fetch(url, init);
    window.WebSocket = class extends EventTarget {
      constructor(url) {
        super();
        this.url = url;
        backend.#sockets.push(this);
        real.setTimeout.call(window, () => this.#open(), backend.#openDelay);
      }
      get readyState() {
        if (this.closed) return 3;
        return this.opened ? 1 : 0;
      }
      #open() {
        if (this.closed) return;
        if (backend.#failing === "upgrade") return this.dispatchEvent(new Event("error"));
        this.opened = true;
        this.dispatchEvent(new Event("open"));
      }
      send(frame) {
        if (!this.opened) throw new DOMException("not open", "InvalidStateError");
        backend.#frames.push(frame);
        setTimeout(() => backend.#received(this, JSON.parse(frame)), 1);
      }
      close(code) {
        this.closed = code;
      }
    };
    AudioContext.prototype.createMediaStreamDestination = function create() {
      backend.#contexts.push(this);
      return real.createMediaStreamDestination.call(this);
    };
    AudioContext.prototype.resume = function resume() {
      backend.#opened.push(this);
      return real.resume.call(this);
    };
    RTCPeerConnection.prototype.addTransceiver = function add(...given) {
      backend.#configuration = this.getConfiguration();
      return real.addTransceiver.apply(this, given);
    };
    const { mediaDevices } = navigator;
    mediaDevices.addEventListener = (name, listener, ...given) => {
      if (name === "devicechange") this.#listeners.add(listener);
      EventTarget.prototype.addEventListener.call(mediaDevices, name, listener, ...given);
    };
    mediaDevices.removeEventListener = (name, listener, ...given) => {
      this.#listeners.delete(listener);
      EventTarget.prototype.removeEventListener.call(mediaDevices, name, listener, ...given);
    };
    RTCPeerConnection.prototype.getStats = function measure() {
      if (this !== backend.#peer) backend.#measured += 1;
      return real.getStats.call(this);
    };
    Object.defineProperty(navigator, "wakeLock", { configurable: true, value: { request: async () => this.#lock() } });
    this.allowMicrophone();
    this.blockPlayback(false);
  }

  /** Leaves the page as it was; throws when something failed in it that nobody caught. */
  uninstall() {
    delete navigator.mediaDevices;
    window.setTimeout = real.setTimeout;
    window.clearTimeout = real.clearTimeout;
    window.fetch = real.fetch;
    window.WebSocket = real.WebSocket;
    AudioContext.prototype.createMediaStreamDestination = real.createMediaStreamDestination;
    AudioContext.prototype.resume = real.resume;
    delete AudioContext.prototype.state;
    AudioWorklet.prototype.addModule = real.addModule;
    RTCPeerConnection.prototype.addTransceiver = real.addTransceiver;
    RTCPeerConnection.prototype.getStats = real.getStats;
    navigator.mediaDevices.getUserMedia = real.getUserMedia;
    delete navigator.mediaDevices.enumerateDevices;
    delete navigator.mediaDevices.addEventListener;
    delete navigator.mediaDevices.removeEventListener;
    delete navigator.permissions.query;
    delete window.isSecureContext;
    HTMLMediaElement.prototype.play = real.play;
    HTMLMediaElement.prototype.setSinkId = real.setSinkId;
    delete navigator.wakeLock;
    delete navigator.audioSession;
    this.#element?.remove();
    this.#style?.remove();
    this.#probe?.close();
    this.#peer?.close();
    this.#voice?.close();
    const caught = uncaught.splice(0);
    if (caught.length > 0) throw new Error(`nobody caught ${caught.join("\n")}`);
  }

  /** Forgets what nobody caught that has these words. */
  forgive(words) {
    uncaught.splice(0, Infinity, ...uncaught.filter((what) => !what.includes(words)));
  }

  allowMicrophone() {
    this.#microphone((constraints) => constraints);
  }

  /** Allows microphones of any identifier: all of them are the one that the browser has. */
  allowAnyMicrophone() {
    this.#microphone(({ audio }) => ({ audio: { ...audio, deviceId: undefined } }));
  }

  #microphone(given) {
    navigator.mediaDevices.getUserMedia = async (constraints) => {
      this.#constraints.push(constraints);
      this.#sessionTypes.push(navigator.audioSession?.type);
      const delay = this.#microphoneDelay;
      this.#microphoneDelay = 0;
      if (delay > 0) await sleep(delay);
      const stream = await real.getUserMedia.call(navigator.mediaDevices, given(constraints));
      for (const track of stream.getTracks()) this.#captured.push(Object.assign(track, { asked: constraints.audio.deviceId }));
      return stream;
    };
  }

  /** Lets the next microphone come late. */
  delayMicrophone(ms) {
    this.#microphoneDelay = ms;
  }

  /** What the microphone was last asked for. */
  constraints() {
    return JSON.stringify(this.#constraints.at(-1));
  }

  /** How often a microphone was asked for. */
  asked() {
    return this.#constraints.length;
  }

  /** By which identifiers the microphones were asked for that are open. */
  openMicrophones() {
    const open = this.#captured.filter(({ readyState }) => readyState === "live");
    return JSON.stringify(open.map(({ asked }) => asked));
  }

  /** The servers and the policy of the client's peer connection. */
  configuration() {
    return JSON.stringify(this.#configuration);
  }

  /** An audio session as an iPhone's page has one. */
  addAudioSession() {
    Object.defineProperty(navigator, "audioSession", { configurable: true, value: { type: "auto" } });
  }

  /** The types that the session had whenever a microphone was asked for, and has now. */
  sessionTypes() {
    return [...this.#sessionTypes, navigator.audioSession.type].join(" ");
  }

  /**
   * Speakers that can be chosen, all of them or none, or a browser that lets nobody choose; the first choice takes `ms`
   * milliseconds longer than the others.
   */
  chooseSpeakers(how, ms) {
    let delay = ms;
    HTMLMediaElement.prototype.setSinkId = how === "never" ? undefined : async (id) => {
      const wait = delay;
      delay = 0;
      if (wait > 0) await sleep(wait);
      this.#sinks.push(id);
      if (how === "missing") throw new DOMException("not found", "NotFoundError");
    };
  }

  /** The speakers that were chosen. */
  sinks() {
    return JSON.stringify(this.#sinks);
  }

  /** Lists these speakers and no other devices, and tells that devices have changed. */
  listSpeakers(ids) {
    const list = ids.split(" ").map((deviceId) => ({ kind: "audiooutput", deviceId, label: deviceId }));
    navigator.mediaDevices.enumerateDevices = async () => list;
    this.deviceChange();
  }

  /** Lets the worklet come late. */
  delayWorklet(ms) {
    AudioWorklet.prototype.addModule = async function add(url) {
      await sleep(ms);
      return real.addModule.call(this, url);
    };
  }

  /** Lets no context run until `releaseAudio`: it is `suspended`, and waits, or `interrupted`, and refuses to resume. */
  holdAudio(state) {
    const backend = this;
    AudioContext.prototype.resume = function resume() {
      backend.#opened.push(this);
      this.suspend();
      return state === "suspended" ? new Promise(() => {}) : Promise.reject(new DOMException(state, "InvalidStateError"));
    };
    if (state !== "suspended") Object.defineProperty(AudioContext.prototype, "state", { configurable: true, get: () => state });
  }

  async releaseAudio() {
    delete AudioContext.prototype.state;
    AudioContext.prototype.resume = real.resume;
    await this.#opened[0].resume();
  }

  /** Whether every context of the SDK is closed. */
  audioIsClosed() {
    return this.#opened.length > 0 && this.#opened.every(({ state }) => state === "closed");
  }

  /** Waits until the microphone has a level. */
  async hasLevel() {
    this.#level = 0;
    for (let i = 0; i < 400; i += 1) {
      if (this.#level > 1e-3) return;
      await sleep(50);
    }
    throw new Error("the microphone has no level");
  }

  /** Takes the microphone away that is in use, as a browser tells it. */
  unplug() {
    const track = this.#captured.findLast(({ readyState }) => readyState === "live");
    track.stop();
    track.dispatchEvent(new Event("ended"));
  }

  /** How many listeners the SDK has for devices that change. */
  listeners() {
    return this.#listeners.size;
  }

  deviceChange() {
    navigator.mediaDevices.dispatchEvent(new Event("devicechange"));
  }

  /** Stops the SDK's audio as a telephone call does; for good, until `restartAudio`, or until it is resumed. */
  async stopAudio(forGood) {
    const context = this.#contexts.at(-1);
    if (forGood) context.resume = () => Promise.reject(new DOMException("interrupted", "InvalidStateError"));
    await context.suspend();
  }

  async restartAudio() {
    const context = this.#contexts.at(-1);
    delete context.resume;
    await context.resume();
  }

  blockPlayback(blocked) {
    const backend = this;
    HTMLMediaElement.prototype.play = function play() {
      if (this === backend.#speaker) return real.play.call(this);
      backend.#played = this;
      if (!blocked) return real.play.call(this);
      this.autoplay = false;
      this.pause();
      return Promise.reject(new DOMException("blocked", "NotAllowedError"));
    };
  }

  /** Stops the character's voice as a system does, until the visitor does something. */
  stopPlayback() {
    this.#played.pause();
  }

  /** Lets the visitor click, or press a key, anywhere in the page. */
  visitor(event) {
    document.body.dispatchEvent(new Event(event, { bubbles: true }));
  }

  /** Lets sockets open late, after so many milliseconds. */
  delayOpening(ms) {
    this.#openDelay = ms;
  }

  #lock() {
    const lock = { released: false, release: async () => { lock.released = true; } };
    this.#locks.push(lock);
    return lock;
  }

  /** Hides the page and shows it again, as far as the wake lock goes: the browser takes it away. */
  hidePage() {
    for (const lock of this.#locks) lock.released = true;
    document.dispatchEvent(new Event("visibilitychange"));
  }

  /** What became of every wake lock. */
  wakeLocks() {
    return this.#locks.map(({ released }) => (released ? "released" : "held")).join(" ");
  }

  /** Puts a small element into the page, for the conversation. */
  addElement(id) {
    this.#element = Object.assign(document.createElement("div"), { id });
    Object.assign(this.#element.style, { height: "100px", overflow: "auto" });
    document.body.append(this.#element);
  }

  element() {
    return this.#element;
  }

  /** Gives the page these styles, and the element no others. */
  restyle(css) {
    this.#element.removeAttribute("style");
    this.#style ??= document.head.appendChild(document.createElement("style"));
    this.#style.textContent = css;
  }

  /** A style of what is shown as a part. */
  styleOf(part, property) {
    const element = this.#element.shadowRoot.querySelector(`[part~=${part}]`);
    return getComputedStyle(element).getPropertyValue(property);
  }

  /** Whether the SDK brought styles of its own. */
  isStyled() {
    const { shadowRoot } = this.#element;
    return shadowRoot.querySelector("style, link, [style]") !== null || shadowRoot.adoptedStyleSheets.length > 0;
  }

  /** What the element shows: the role of the log, and each line's parts and words. */
  history() {
    const log = this.#element.shadowRoot.firstElementChild;
    const lines = [...log.children].map((line) => `${line.getAttribute("part")}=${line.textContent}`);
    return `${log.getAttribute("role")}: ${lines.join(" | ")}`;
  }

  /** What a screen reader is given from now on: the lines that change where changes are said. */
  readAloud() {
    new MutationObserver((changes) => {
      for (const { target, addedNodes } of changes) {
        const line = target.closest?.("[part~=line]");
        if (addedNodes.length > 0 && line?.ariaLive === "polite" && line.ariaAtomic === "true") this.#said.push(line.textContent);
      }
    }).observe(this.#element.shadowRoot, { childList: true, subtree: true });
  }

  said() {
    return this.#said.join(" | ");
  }

  /** The name of the log. */
  historyName() {
    return this.#element.shadowRoot.firstElementChild.ariaLabel;
  }

  /** What scrolls: the element itself, or the log in it. */
  #scroller() {
    const log = this.#element.shadowRoot.firstElementChild;
    return getComputedStyle(log).overflowY === "auto" ? log : this.#element;
  }

  scrollUp() {
    this.#scroller().scrollTop = 0;
  }

  scrolledToEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller();
    return scrollHeight > clientHeight && scrollHeight - scrollTop - clientHeight < 2;
  }

  measured() {
    return this.#measured;
  }

  /** The last argument of `onStats`. */
  stats() {
    return this.#stats;
  }

  /** The status that the next requests get. */
  status = 200;

  #fetch(url, init) {
    if (String(url).endsWith("/v2/calls/check")) return this.#check(JSON.parse(init.body).sdp, init.signal);
    if (!String(url).endsWith("/v2/calls")) return real.fetch.call(window, url, init);
    this.#requests.push({ url, key: init.headers.get("X-Api-Key"), body: JSON.parse(init.body) });
    if (this.status === 0) return Promise.reject(new TypeError("Failed to fetch"));
    const body =
      this.status === 200
        ? { data: { id: "/v2/calls/1", signedUrl: "wss://calls.invalid/v2/calls/1/session" } }
        : { error: { code: "UNKNOWN", message: "refused" } };
    return Promise.resolve(new Response(JSON.stringify(body), { status: this.status }));
  }

  /** 0 for a network that is away. */
  refuse(status) {
    this.status = status;
  }

  /** Lets so many of the client's connections come to nothing: neither side learns where the other is. */
  ignoreConnections(count) {
    this.#deaf = count;
  }

  /** What `onCallStart` or `onHangUp` was given last; the log has their names alone. */
  given(name) {
    return JSON.stringify(this.#given[name]);
  }

  /** Fails the next checks: the backend's `answer` or its `body` never comes, nobody listens on its `media` port, or a proxy drops the `upgrade` of sockets. */
  failCheck(how) {
    this.#failing = how;
  }

  /** Refuses so many checks with this status and `Retry-After`. */
  refuseChecks(times, status, retryAfter) {
    this.#refusals = Array(times).fill({ status, headers: { "Retry-After": retryAfter } });
  }

  /** Lets the SDK's timers run so many times faster. */
  hurry(times) {
    this.#hurry = times;
  }

  /** What the browser says of the permission for the microphone. */
  permit(state) {
    navigator.permissions.query = async () => ({ state });
  }

  /** Takes all devices away, or the access to them, as in a page that came over plain HTTP. */
  withoutDevices(how) {
    if (how === "none") navigator.mediaDevices.enumerateDevices = async () => [];
    else {
      Object.defineProperty(navigator, "mediaDevices", { configurable: true, value: undefined });
      Object.defineProperty(window, "isSecureContext", { configurable: true, value: how === "secure" });
    }
  }

  /** How many requests were given up. */
  aborted = 0;

  /** How many checks came. */
  checks = 0;

  /** How many milliseconds after a refusal the last check came. */
  waitedMs = 0;

  async #check(sdp, signal) {
    this.checks += 1;
    this.waitedMs = performance.now() - this.#refusedAt;
    const refusal = this.#refusals.pop();
    if (refusal) {
      this.#refusedAt = performance.now();
      return new Response("{}", refusal);
    }
    if (this.status !== 200) return new Response("{}", { status: this.status });
    const never = new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        this.aborted += 1;
        reject(signal.reason);
      });
    });
    if (this.#failing === "answer") return never;
    if (this.#failing === "body") {
      const body = new ReadableStream({ start: (stream) => { never.catch((reason) => stream.error(reason)); } });
      return new Response(body);
    }
    this.#probe?.close();
    this.#probe = new RTCPeerConnection();
    await this.#probe.setRemoteDescription({ type: "offer", sdp });
    await this.#probe.setLocalDescription(await this.#probe.createAnswer());
    // The answer holds all candidates.
    while (this.#probe.iceGatheringState !== "complete") await sleep(10);
    const answer = this.#probe.localDescription.sdp;
    if (this.#failing === "media") this.#probe.close();
    return new Response(JSON.stringify({ data: { sdp: answer } }));
  }

  /** Refuses every microphone for a reason that takes `ms` milliseconds to find out. */
  refuseMicrophone(name, ms) {
    navigator.mediaDevices.getUserMedia = async (constraints) => {
      this.#constraints.push(constraints);
      await sleep(ms);
      throw new DOMException("refused", name);
    };
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
        const [, fingerprint] = /a=fingerprint:(.*)/.exec(message.sdp);
        // Another certificate is another connection.
        if (this.#peer === undefined || this.#fingerprint !== fingerprint) {
          this.#peer?.close();
          this.#isDeaf = this.#deaf > 0;
          this.#deaf -= 1;
          this.#fingerprint = fingerprint;
          this.#connect();
        }
        await this.#peer.setRemoteDescription({ type: "offer", sdp: message.sdp });
        await this.#peer.setLocalDescription(await this.#peer.createAnswer());
        say({ type: "answer", sdp: this.#peer.localDescription.sdp });
        break;
      }
      case "candidate":
        if (message.candidate !== null && !this.#isDeaf) {
          const peer = this.#peer;
          await peer.addIceCandidate({
            candidate: message.candidate, sdpMid: message.sdp_mid, sdpMLineIndex: message.sdp_m_line_index,
          }).catch((reason) => {
            // One of a connection that is over, by the end of a test or by another one, is refused.
            if (peer === this.#peer && peer.signalingState !== "closed") throw reason;
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
    // The character's voice: silence.
    this.#voice ??= new AudioContext();
    const [track] = real.createMediaStreamDestination.call(this.#voice).stream.getAudioTracks();
    peer.addTrack(track);
    const isDeaf = this.#isDeaf;
    peer.onicecandidate = ({ candidate }) =>
      !isDeaf && this.#deliver(this.#sockets.at(-1), {
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
    setTimeout(() => socket.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(message) })), 1);
  }

  /** Sends a frame to the client. */
  say(frame) {
    this.#deliver(this.#sockets.at(-1), JSON.parse(frame));
  }

  /** Sends a frame to the client that is no message. */
  sayRaw(data) {
    this.#sockets.at(-1).dispatchEvent(new MessageEvent("message", { data }));
  }

  /** Cuts the connection, without a goodbye unless a code is given. */
  cut(code = 1006) {
    this.#sockets.at(-1).dispatchEvent(new CloseEvent("close", { code }));
  }

  /** Fails the connection as Chromium does when a policy blocks it: nothing but `error` is told. */
  failSocket() {
    this.#sockets.at(-1).dispatchEvent(new Event("error"));
  }

  /** Tells that the page's policy blocked a URL, or would have. */
  violate(disposition, blockedURI) {
    const effectiveDirective = "connect-src";
    const init = { bubbles: true, disposition, blockedURI, effectiveDirective, violatedDirective: effectiveDirective };
    document.dispatchEvent(new SecurityPolicyViolationEvent("securitypolicyviolation", { documentURI: location.href, originalPolicy: "", statusCode: 200, ...init }));
  }

  callbacks(throwing) {
    const hear = (name) => (argument) => {
      if (name === "onLevels") {
        this.#level = Math.max(this.#level, argument.microphone);
        return;
      }
      if (name === "onStats") this.#stats = argument;
      if (name === "onCallStart" || name === "onHangUp") {
        this.#given[name] = argument;
        argument = undefined;
      }
      const told = argument instanceof Error ? `${argument.name}:${argument.code}` : JSON.stringify(argument);
      this.#log.push(argument === undefined ? name : `${name} ${told}`);
      if (throwing) throw new Error(`${name} throws`);
    };
    const names = [
      "onCallStart", "onCallError", "onHangUp", "onStatusUpdate", "onCallStarting", "onConnected", "onUserInfo",
      "onRagInfo", "onTranscript", "onAgentStateChange", "onError", "onStats", "onDevicesChanged",
      "onLevels", "onAudioBlockedChange",
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
    return JSON.stringify(this.#requests.at(-1));
  }

  /** Whether every microphone track has ended, every socket is closed, and no long timer runs. */
  isReleased() {
    return this.#timers.size === 0
      && this.#captured.every((track) => track.readyState === "ended")
      && this.#sockets.every((socket) => socket.closed === 1000);
  }

  captures() {
    return this.#captured.length;
  }

  /** Waits until the log has the text. */
  async waitFor(text) {
    for (let i = 0; i < 800; i += 1) {
      if (this.log().includes(text)) return;
      await sleep(50);
    }
    throw new Error(`no ${text} in:\n${this.log()}`);
  }

  /** Waits until the client is heard: the first sound takes as long as devices and encoders need to start. */
  async hears() {
    const before = await this.#totalEnergy();
    for (let i = 0; i < 400; i += 1) {
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
