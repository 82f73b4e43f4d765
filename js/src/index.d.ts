/**
 * Live voice conversations with an AI character.
 *
 * ```ts
 * import { CallManager, type Callbacks } from "@colloquy/sdk";
 *
 * export function call(signedUrl: string, callbacks: Callbacks) {
 *   const manager = new CallManager(callbacks);
 *   return manager.handleCall2(null, null, signedUrl);
 * }
 * ```
 */

/** Where the SDK's files are served, when they are not beside the module. */
export interface InitOptions {
  /** The URL of `colloquy_sdk_bg.wasm` (export `@colloquy/sdk/wasm`). */
  wasmUrl?: string | URL;
  /** The URL of `worklet.js` (export `@colloquy/sdk/worklet.js`); on the page's origin under a strict CSP. */
  workletUrl?: string | URL;
}

/**
 * Loads the wasm. Calling it is optional and may be repeated; the first call's options count, so call it before the
 * first `CallManager` is constructed. Rejects with `LOAD_FAILED`, after which it may be called again.
 */
export function init(options?: InitOptions): Promise<void>;

/** The state of a call. */
export type CallStatus =
  /** The call exists, and the visitor cannot be heard yet. */
  | "starting"
  /** Both sides can be heard. */
  | "ongoing"
  /** The connection or the sound is lost, and comes back within 30 seconds or not at all. */
  | "reconnecting"
  /** The call ended as it should: somebody hung up, or its time was over. */
  | "completed"
  /** The call failed; `onCallError` told why. */
  | "error";

/** Why a call is over. */
export type HangUpReason =
  /** This side ended it: `hangUp`, `destroy`, or the page was left. */
  | "local"
  /** The other side ended it. */
  | "remote"
  /** Its time was over. */
  | "time_limit"
  /** The service is being restarted. */
  | "shutdown"
  /** It failed; `onCallError` told why. */
  | "error";

/** What is known of a call when it begins. */
export interface CallStart {
  /**
   * The call's `id` as your server has it from the backend, `/v2/calls/<id>`. Null with an API key, because the call is
   * created after this; `callId` of the manager has it from then on.
   */
  callId: string | null;
}

/** What the character is doing. */
export type AgentState =
  /** It waits for the visitor, or hears the visitor speak. */
  | "listening"
  /** The visitor's turn is over, and the reply is on its way. */
  | "thinking"
  /** Its voice plays. */
  | "speaking";

/** Why a call failed. These names do not change; new ones may be added. */
export type CallErrorCode =
  /** The visitor or a policy refused the microphone. */
  | "MICROPHONE_DENIED"
  /** There is no microphone, or the chosen one is gone. */
  | "MICROPHONE_MISSING"
  /** The microphone exists and cannot be read, mostly because another program uses it. */
  | "MICROPHONE_BUSY"
  /** The chosen speaker cannot be used, or the browser does not let a page choose one. */
  | "SPEAKER_MISSING"
  /**
   * The browser plays no sound before the visitor clicks: call `startAudio()` then. The call goes on, and
   * `onAudioBlockedChange` tells when the voice plays.
   */
  | "AUDIO_BLOCKED"
  /** The page is not served over HTTPS. */
  | "INSECURE_CONTEXT"
  /** The browser lacks WebRTC, WebSocket or microphone access. */
  | "UNSUPPORTED_BROWSER"
  /** The SDK's wasm could not be loaded. */
  | "LOAD_FAILED"
  /** An argument cannot be used; the message names it. */
  | "INVALID_ARGUMENT"
  /** `handleCall2` was called while a call is active. */
  | "CALL_ACTIVE"
  /** The API key is missing, unknown or not allowed to make calls. */
  | "INVALID_KEY"
  /** The character does not exist or cannot be used. */
  | "INVALID_CHARACTER"
  /** The signed URL was changed. */
  | "INVALID_SIGNATURE"
  /** The signed URL expired before a client connected. */
  | "URL_EXPIRED"
  /** Another client is in the call. */
  | "CALL_IN_USE"
  /** There is no such call, or it is over. */
  | "CALL_NOT_FOUND"
  /** The service has no room for another call, or is stopping. */
  | "CAPACITY"
  /** Too many requests, or a quota is used up. */
  | "RATE_LIMITED"
  /** Client and server do not understand each other. */
  | "PROTOCOL"
  /**
   * The server cannot be reached, or the connection did not come back within 30 seconds. The message names the directive
   * when the page's Content-Security-Policy is why.
   */
  | "NETWORK"
  /**
   * Signalling works but no audio gets through, after two tries: mostly a firewall blocks UDP to the media port, and a
   * TURN server helps. The message says when it was something else.
   */
  | "MEDIA"
  /** The server failed. */
  | "SERVER";

/** A failure: a stable code, and a message that says what to do. */
export class CallError extends Error {
  /** For tests of an application; the SDK makes its own. `fatal` is false unless it is given. */
  constructor(code: CallErrorCode, message: string, options?: { cause?: unknown; fatal?: boolean });
  /** By which the error is known, also where `instanceof` is not: in a log, or in another window. */
  readonly name: "CallError";
  /** What happened, for the application to compare with. */
  readonly code: CallErrorCode;
  /** Whether it ends a call, and `onHangUp` follows; false for what an operation outside a call rejects with. */
  readonly fatal: boolean;
}

/** A document that a reply was based on. */
export interface RagDocument {
  /** The document's title in the knowledge base. */
  title: string;
  /** How well it fits, by all searches together: the higher the better, comparable within one reply. */
  fusion_score: number;
  /** How many tokens of the reply's prompt it takes. */
  token_count: number;
}

/** The documents that a reply was based on. */
export interface RagData {
  /** The documents, the best first. */
  documents: RagDocument[];
  /** How many documents there are. */
  count?: number;
  /** The tokens of all documents together. */
  total_tokens: number;
}

/** A line of the running transcript. A line with the same `id` replaces the earlier one. */
export interface TranscriptLine {
  /** Names the line within its call. */
  id: string;
  /** Who said it: the visitor or the character. */
  originator: "user" | "bot";
  /** The name to show: `personRole` or `characterRole`. */
  role: string;
  /** The words; empty when they were taken back, because nothing was understood in the end. */
  text: string;
  /**
   * Whether the line will not change any more. A line that is open when the call ends becomes final with the words that it has, before
   * `onHangUp`: of the character's, they may hold the rest of a sentence that was not heard, which the stored transcript leaves out.
   */
  final: boolean;
  /** Milliseconds since the audio connected. */
  atMs: number;
}

/**
 * Loudness, the root mean square of the samples, 0 to 1; 0 where the browser runs without the audio worklet, and while it
 * holds the page's audio back.
 */
export interface Levels {
  /** What the visitor says; 0 while muted. */
  microphone: number;
  /** What the character says. */
  speaker: number;
}

/** The quality of the call over the last two seconds, from the browser's WebRTC statistics. */
export interface CallStats {
  /**
   * `fair` from 250 ms of round trip or 2 % of loss or concealment on; `poor` from 500 ms or 8 % on, and within 5
   * seconds of the last sign of the backend.
   */
  quality: "good" | "fair" | "poor";
  /** The round trip to the backend in milliseconds; null until it was measured. */
  roundTripMs: number | null;
  /** The variation of the arrival times in milliseconds; null until it was measured. */
  jitterMs: number | null;
  /** The fraction of the visitor's packets that the backend did not get, 0 to 1; null until it said so. */
  lossSent: number | null;
  /** The fraction of the character's packets that did not arrive, 0 to 1. */
  lossReceived: number;
  /** The fraction of what was played that the browser had to make up, 0 to 1; not what it makes up until it knows of a pause. */
  concealed: number;
  /** Bits a second; null in the first report. */
  bitrateSent: number | null;
  /** Bits a second; null in the first report. */
  bitrateReceived: number | null;
  /** `host`, `srflx`, `prflx` or `relay`: how this side is reached. */
  candidateType: string | null;
  /** `udp` or `tcp`; with `relay`, to the TURN server. */
  protocol: string | null;
}

/** A part of a check that failed, with the code that a call would fail with. */
export interface CheckFailure {
  /** False: this part failed. */
  ok: false;
  /** What a call would fail with. */
  code: CallErrorCode;
  /** What happened at which URL, and what to do. */
  message: string;
}

/** What `CallManager.preCallCheck` found. */
export interface CheckReport {
  /** Whether a call would probably work: nothing below failed, there is a microphone, and it is not denied. */
  ok: boolean;
  /**
   * What a call would fail with first, null when `ok`: `INSECURE_CONTEXT` over plain HTTP, `UNSUPPORTED_BROWSER`,
   * `MICROPHONE_DENIED`, `MICROPHONE_MISSING`, or the code of `backend` or `media`.
   */
  code: CallErrorCode | null;
  /** `prompt`: the visitor will be asked. `unknown`: the browser does not tell. `unsupported`: it gives the page none. */
  permission: "granted" | "denied" | "prompt" | "unknown" | "unsupported";
  /** How many microphones there are. */
  microphones: number;
  /** How many speakers there are to choose from. */
  speakers: number;
  /**
   * Whether the backend answers within 10 seconds, and after how many milliseconds, and whether a WebSocket to it opens: `NETWORK` where a
   * proxy in front of it does not pass `Upgrade` on.
   */
  backend: { ok: true; ms: number } | CheckFailure;
  /** Whether the backend's media port can be reached, after how many milliseconds, and how; see `CallStats`. */
  media: { ok: true; ms: number; candidateType: string | null; protocol: string | null } | CheckFailure;
}

/**
 * What the application hears. The callbacks are called as methods of the object that the constructor was given, and may
 * use every operation. An exception in a callback is logged and does not touch the call.
 */
export interface Callbacks {
  /** `handleCall2` begins. */
  onCallStart(start: CallStart): void;
  /** A call could not be started, or something failed in it. When the failure ends the call, `onHangUp` follows. */
  onCallError(error: CallError): void;
  /** The call is over and everything is released. Fires exactly once after each `onCallStart`; the next call may begin here. */
  onHangUp(reason: HangUpReason): void;
  /** The call's status changed. */
  onStatusUpdate(status: CallStatus): void;
  /** The microphone is granted; the audio connection comes next. */
  onCallStarting?(): void;
  /** The audio connection is up. */
  onConnected?(): void;
  /**
   * What became known of the visitor, once the character has answered a turn: the JSON text of an object with the fields of the
   * character's `profile_schema` that are new or changed, such as `{"name":"Ada"}`, and null for what is not true any more. The
   * callback, or a listener, has to be there when the call begins; without one, the backend does not ask.
   */
  onUserInfo?(info: string): void;
  /** The character used retrieval documents; it does not fire when nothing was found. */
  onRagInfo?(ragData: RagData): void;
  /** A line of the transcript is new or changed. */
  onTranscript?(line: TranscriptLine): void;
  /** The character listens, thinks or speaks. */
  onAgentStateChange?(state: AgentState): void;
  /** The loudness of both sides, 20 times a second. */
  onLevels?(levels: Levels): void;
  /** The quality of the call, every two seconds. */
  onStats?(stats: CallStats): void;
  /** Microphones or speakers were plugged or unplugged, in a call and for as long as the page holds the manager. */
  onDevicesChanged?(devices: Devices): void;
  /**
   * Whether the browser holds the character's voice back: true just after each `AUDIO_BLOCKED`, false when the voice
   * plays again, whatever brought that about.
   */
  onAudioBlockedChange?(isBlocked: boolean): void;
  /** The same failures as `onCallError`, just before it. */
  onError?(error: CallError): void;
}

/** How calls are made. */
export interface Config {
  /** The name shown for the character; the character's own name otherwise. */
  characterRole?: string | null;
  /** The name shown for the visitor; `You` otherwise. */
  personRole?: string | null;
  /** The microphone to use; the system's otherwise. */
  microphoneId?: string | null;
  /** The speaker to use; the system's otherwise. */
  speakerId?: string | null;
  /**
   * Where calls are created with an API key, and what `preCallCheck` asks; the page's origin otherwise. A URL with its scheme, such as
   * `https://calls.example.org`. A signed URL needs none.
   */
  backendUrl?: string | null;
  /** The same as `backendUrl`, which wins. */
  BACKEND_URL?: string | null;
  /** The longest a call created with an API key may last, in whole seconds, 1 to 14400; 600 otherwise. */
  callTimeLimitSeconds?: number | null;
  /** Template parameters of a saved character, for calls created with an API key. */
  characterParams?: Record<string, unknown> | null;
  /**
   * The element that shows the conversation, or its id; it must be able to hold a shadow root, as a `div` is. The
   * `log` in it has `line`s of `role`, `separator` and `text`, to be styled as parts: `#history::part(line)`. A line is
   * also `user` or `bot`, and `interim` until its words are final. Each call begins with an empty log. Its name for
   * screen readers is the element's `aria-label`, or `Conversation`. An element with a shadow root of its own is refused
   * with `INVALID_ARGUMENT` when the call starts.
   */
  historyElement?: HTMLElement | string | null;
  /** What the browser does with the microphone's sound. */
  audio?: AudioOptions | null;
  /** ICE servers in place of the backend's. */
  iceServers?: RTCIceServer[] | null;
  /** `relay` lets media flow through TURN servers only; `all` otherwise. */
  iceTransportPolicy?: "all" | "relay" | null;
  /** Whether the screen stays on during a call; true otherwise. */
  wakeLock?: boolean | null;
}

/** What the browser does with the microphone's sound; each is on unless it is turned off. */
export interface AudioOptions {
  /** Takes the character's voice out of the microphone's sound. */
  echoCancellation?: boolean | null;
  /** Takes out steady noise. */
  noiseSuppression?: boolean | null;
  /** Makes quiet voices louder. */
  autoGainControl?: boolean | null;
}

/** A character that is not saved. */
export interface CustomCharacter {
  /** A JSON string of configuration. */
  description: string;
  /** The system prompt. */
  personality: string;
}

/** A microphone or speaker. */
export interface Device {
  /** What `changeDevices` and the configuration take; empty before the visitor allowed the microphone once. */
  deviceId: string;
  /** Its name, to be shown; empty before the visitor allowed the microphone once. */
  label: string;
  /** Whether it is the system's choice. */
  isDefault: boolean;
}

/** The devices to choose from. */
export interface Devices {
  /** The microphones; empty without any. */
  microphones: Device[];
  /** The speakers; empty in browsers that do not let a page choose. */
  speakers: Device[];
}

/**
 * Makes voice calls with a character, one at a time. A page may let go of a manager: a call goes on to its end, and a
 * manager without one is collected with all that it holds.
 */
export class CallManager {
  /**
   * Throws a `CallError` with the code `INVALID_ARGUMENT` that names what is wrong: a required callback that is missing,
   * or a key of `config` that is of the wrong type. A key that the SDK does not know, misspelt perhaps, is named by a
   * warning in the console and does nothing.
   */
  constructor(callbacks: Callbacks, config?: Config | null);

  /**
   * The id of the running or last call, `/v2/calls/<id>`, as your server has it from the backend; null while it is not
   * known. With a signed URL it is known in `onCallStart`, with an API key once the call is created.
   */
  readonly callId: string | null;

  /** Whether silence is sent, in this call and in later ones. */
  readonly isMuted: boolean;

  /**
   * Creates and starts a call with an API key, which everyone who opens the page can read: for development.
   *
   * Resolves when the call is connected or over. Failures go to `onCallError`; the promise rejects only with
   * `CALL_ACTIVE`, when a call is under way, which is left alone, and with `INVALID_ARGUMENT` after `destroy`.
   *
   * @param partner `repo:<partner>`
   * @param character the character's name, or a custom character
   * @param credential the API key
   * @param customMetadata passed to the backend: what JSON can say of an object, at most about 64 KiB of it, or the call
   *   fails with `INVALID_ARGUMENT`
   */
  handleCall2(
    partner: string | null,
    character: string | CustomCharacter,
    credential: string,
    customMetadata?: Record<string, unknown> | null,
  ): Promise<void>;

  /**
   * Connects to a call that your server created. Resolves and rejects as above. The session is opened before the visitor
   * is asked for the microphone, so nobody is asked for a URL that has expired or was used.
   *
   * @param credential the call's `signedUrl`
   * @param customMetadata as above
   */
  handleCall2(
    partner: null,
    character: null,
    credential: string,
    customMetadata?: Record<string, unknown> | null,
  ): Promise<void>;

  /**
   * Ends the call, at any moment; without a call it does nothing. Everything that the visitor notices is released at once.
   * A connection that is still being opened, or is away, is kept or opened again for up to three seconds to tell the
   * backend. A backend that cannot be told ends the call itself: 30 seconds after the connection was lost, or when the
   * signed URL expires that nobody has used.
   */
  hangUp(): void;

  /** True sends silence, false resumes. It also holds for later calls. */
  mute(isMuted: boolean): void;

  /**
   * Listens beside the callbacks: to the same events, under the callbacks' names, with as many listeners as you like. They
   * are called after the callback, in the order in which they were added; one that is added twice is called once. Throws
   * `INVALID_ARGUMENT` for a name that is no callback's.
   */
  on<Name extends keyof Callbacks>(name: Name, listener: NonNullable<Callbacks[Name]>): this;

  /** Takes away a listener that `on` has added; of another one it takes no notice. */
  off<Name extends keyof Callbacks>(name: Name, listener: NonNullable<Callbacks[Name]>): this;

  /**
   * Ends the call, if there is one, and gives back everything that the manager holds. `onHangUp` of that call is the last
   * that is heard of it. Afterwards `handleCall2` rejects with `INVALID_ARGUMENT`, and the other operations do nothing.
   * A page that lets go of a manager need not call it; it matters where a page makes many.
   */
  destroy(): void;

  /**
   * The devices to choose from. Rejects with `INSECURE_CONTEXT` or `UNSUPPORTED_BROWSER` where the browser gives the page
   * no devices, and with `LOAD_FAILED`.
   */
  static getAvailableDevices(): Promise<Devices>;

  /**
   * Checks before a call what it needs: permission, devices, the backend, and the way to its media port. It makes a
   * connection as a call does, without a call, and asks for no permission. TURN servers that the backend hands out to
   * calls are not tried; `iceServers` of `config` are. A backend that has too many checks at a time, and says to ask again
   * within 5 seconds, is asked once more then.
   *
   * Rejects with `INVALID_ARGUMENT` where the constructor would throw it, and with `LOAD_FAILED`.
   *
   * @param config what will be given to the constructor: `backendUrl`, `iceServers` and `iceTransportPolicy` count
   */
  static preCallCheck(config?: Config | null): Promise<CheckReport>;

  /**
   * Plays what the browser held back (`AUDIO_BLOCKED`); call it when the visitor clicks. Any click or key on the page
   * does the same. Rejects with `AUDIO_BLOCKED` when the browser still refuses.
   */
  startAudio(): Promise<void>;

  /**
   * Switches devices during a call; `null` keeps the current one. Without a call it chooses for the next one, and while
   * the visitor is asked for the microphone for the one that starts. Of two choices the later one counts.
   * Rejects with `MICROPHONE_DENIED`, `MICROPHONE_MISSING`, `MICROPHONE_BUSY` or `SPEAKER_MISSING` when a device cannot be
   * used, and the one in use then stays; and with `LOAD_FAILED`.
   */
  changeDevices(microphoneId: string | null, speakerId: string | null): Promise<void>;

  /**
   * Sends a typed turn. False when there is no connected call, when the text is empty or longer than 4,000 characters,
   * and when too many turns wait for a lost connection.
   */
  sendText(text: string): boolean;

  /**
   * `idle` before the first call, then the status of the running or last call, also of one that ended before it was
   * created and so had no `onStatusUpdate`.
   */
  getState(): "idle" | CallStatus;
}
