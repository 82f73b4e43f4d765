/**
 * Live voice conversations with an AI character.
 *
 * ```ts
 * const manager = new CallManager({ onCallStart, onCallError, onHangUp, onStatusUpdate });
 * await manager.handleCall2(null, null, signedUrl);
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
export type CallStatus = "starting" | "ongoing" | "reconnecting" | "completed" | "error";

/** What the character is doing. */
export type AgentState = "listening" | "thinking" | "speaking";

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
  /** The service has no room for another call. */
  | "CAPACITY"
  /** Too many requests, or a quota is used up. */
  | "RATE_LIMITED"
  /** Client and server do not understand each other. */
  | "PROTOCOL"
  /** The server cannot be reached, or the connection did not come back within 30 seconds. */
  | "NETWORK"
  /** Signalling works but no audio connection comes about: allow UDP, or configure TURN. */
  | "MEDIA"
  /** The server failed. */
  | "SERVER";

/** A failure: a stable code, and a message that says what to do. */
export class CallError extends Error {
  constructor(code: CallErrorCode, message: string, options?: { cause?: unknown });
  readonly name: "CallError";
  readonly code: CallErrorCode;
}

/** A document that a reply was based on. */
export interface RagDocument {
  title: string;
  fusion_score: number;
  token_count: number;
}

/** The documents that a reply was based on. */
export interface RagData {
  documents: RagDocument[];
  /** How many documents there are. */
  count?: number;
  /** The tokens of all documents together. */
  total_tokens: number;
}

/** A line of the running transcript. A line with the same `id` replaces the earlier one. */
export interface TranscriptLine {
  id: string;
  originator: "user" | "bot";
  /** The name to show: `personRole` or `characterRole`. */
  role: string;
  text: string;
  /** Whether the line will not change any more. */
  final: boolean;
  /** Milliseconds since the audio connected. */
  atMs: number;
}

/** Loudness, the root mean square of the samples, 0 to 1; 0 where the browser runs without the audio worklet. */
export interface Levels {
  /** What the visitor says; 0 while muted. */
  microphone: number;
  /** What the character says. */
  speaker: number;
}

/** What the application hears. An exception in a callback is logged and does not touch the call. */
export interface Callbacks {
  /** `handleCall2` begins. */
  onCallStart(): void;
  /** A call could not be started, or something failed in it. When the failure ends the call, `onHangUp` follows. */
  onCallError(error: CallError): void;
  /** The call is over and everything is released. Fires exactly once after each `onCallStart`. */
  onHangUp(): void;
  /** The call's status changed. */
  onStatusUpdate(status: CallStatus): void;
  /** The microphone is granted; the audio connection comes next. */
  onCallStarting?(): void;
  /** The audio connection is up. */
  onConnected?(): void;
  /** There is new information about the visitor. */
  onUserInfo?(info: string): void;
  /** The character used retrieval documents. */
  onRagInfo?(ragData: RagData): void;
  /** A line of the transcript is new or changed. */
  onTranscript?(line: TranscriptLine): void;
  /** The character listens, thinks or speaks. */
  onAgentStateChange?(state: AgentState): void;
  /** The loudness of both sides, 20 times a second. */
  onLevels?(levels: Levels): void;
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
  /** Where calls are created with an API key; the page's origin otherwise. A signed URL needs none. */
  backendUrl?: string | null;
  /** The same as `backendUrl`, which wins. */
  BACKEND_URL?: string | null;
  /** The longest a call created with an API key may last; 600 otherwise. */
  callTimeLimitSeconds?: number | null;
  /** Template parameters of a saved character, for calls created with an API key. */
  characterParams?: Record<string, unknown> | null;
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
  deviceId: string;
  /** Empty before the visitor allowed the microphone once. */
  label: string;
  isDefault: boolean;
}

/** The devices to choose from. */
export interface Devices {
  microphones: Device[];
  /** Empty in browsers that do not let a page choose. */
  speakers: Device[];
}

/** Makes voice calls with a character, one at a time. */
export class CallManager {
  /** Throws a `CallError` with the code `INVALID_ARGUMENT` when a required callback is missing. */
  constructor(callbacks: Callbacks, config?: Config | null);

  /**
   * Creates and starts a call with an API key, which everyone who opens the page can read: for development.
   *
   * Resolves when the call is connected or over. Failures go to `onCallError`; the promise rejects only with
   * `CALL_ACTIVE`, when a call is under way, which is left alone.
   *
   * @param partner `repo:<partner>`
   * @param character the character's name, or a custom character
   * @param credential the API key
   * @param customMetadata passed to the backend
   */
  handleCall2(
    partner: string | null,
    character: string | CustomCharacter,
    credential: string,
    customMetadata?: Record<string, unknown> | null,
  ): Promise<void>;

  /**
   * Connects to a call that your server created. Resolves and rejects as above.
   *
   * @param credential the call's `signedUrl`
   * @param customMetadata passed to the backend
   */
  handleCall2(
    partner: null,
    character: null,
    credential: string,
    customMetadata?: Record<string, unknown> | null,
  ): Promise<void>;

  /** Ends the call, at any moment; without a call it does nothing. */
  hangUp(): void;

  /** True sends silence, false resumes. It also holds for later calls. */
  mute(isMuted: boolean): void;

  /** The devices to choose from. */
  static getAvailableDevices(): Promise<Devices>;

  /**
   * Switches devices during a call; `null` keeps the current one. Without a call it chooses for the next one.
   * Rejects with a `CallError` when a device cannot be used; the one in use then stays.
   */
  changeDevices(microphoneId: string | null, speakerId: string | null): Promise<void>;

  /** Sends a typed turn; false when there is no connected call, or the text is empty or longer than 64 KiB. */
  sendText(text: string): boolean;

  /** `idle` before the first call, then the status of the running or last call. */
  getState(): "idle" | CallStatus;
}
