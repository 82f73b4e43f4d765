import type {
  AgentState, CallError, CallStatus, Callbacks, HangUpReason, Config, CustomCharacter, TranscriptLine,
} from "./index.js";

/**
 * The SDK's configuration and any of its callbacks. They may change in every rendering: callbacks count at once,
 * configuration from the next call on, and so does the first listener for `onLevels`, `onStats`, `onDevicesChanged` or
 * `onUserInfo`.
 */
export interface UseCallOptions extends Config, Partial<Callbacks> {}

/** What to call: a call that your server created, or, for development, a character by means of an API key. */
export type CallTarget =
  | { signedUrl: string }
  | { partner: string; character: string | CustomCharacter; apiKey: string };

/** A call as state, and its operations, which are the same functions in every rendering. */
export interface UseCall {
  /** `idle` before the first call, then the status of the running or last call. */
  status: "idle" | CallStatus;
  /** Whether a call is under way: `starting`, `ongoing` or `reconnecting`. */
  isActive: boolean;
  /** The id of the running or last call, as `callId` of `CallManager` has it; null while it is not known. */
  callId: string | null;
  /** What the character is doing; null without a call, and before the character did anything. */
  agentState: AgentState | null;
  /** The lines of the running or last call, in the order in which they began. */
  transcript: TranscriptLine[];
  /** Whether silence is sent. */
  muted: boolean;
  /**
   * What failed last in the running or last call. Only when it is `fatal` did it end the call. `AUDIO_BLOCKED` goes when
   * the voice plays.
   */
  error: CallError | null;
  /** Why the last call is over; null before that, and while the next one is under way. */
  hangUpReason: HangUpReason | null;

  /**
   * Starts a call; to be called when the visitor clicks, so that the browser plays sound. Resolves when the call is
   * connected or over. Failures go to `error` and `onCallError`; the promise rejects only with `CALL_ACTIVE`, when a
   * call is under way, which is left alone, and with `INVALID_ARGUMENT` for changed options that cannot be used. Without
   * a mounted component it does nothing.
   *
   * @param call whom to call
   * @param customMetadata passed to the backend, as `handleCall2` of `CallManager` does
   */
  start(call: CallTarget, customMetadata?: Record<string, unknown> | null): Promise<void>;

  /** Ends the call, at any moment; without a call it does nothing. */
  hangUp(): void;

  /** True sends silence, false resumes. It also holds for later calls. */
  mute(isMuted: boolean): void;

  /**
   * Sends a typed turn. False when there is no connected call, when the text is empty or longer than 4,000 characters,
   * and when too many turns wait for a lost connection.
   */
  sendText(text: string): boolean;

  /**
   * Switches devices during a call; `null` keeps the current one. From then on it wins over `microphoneId` and
   * `speakerId`. Rejects as `changeDevices` of `CallManager` does; the device in use then stays.
   */
  changeDevices(microphoneId: string | null, speakerId: string | null): Promise<void>;

  /**
   * Plays what the browser held back (`AUDIO_BLOCKED`); call it when the visitor clicks. Rejects with `AUDIO_BLOCKED`
   * when the browser still refuses.
   */
  startAudio(): Promise<void>;

  /**
   * Listens beside the callbacks, as `on` of `CallManager` does, for as long as the component is mounted or until `off`;
   * for components further down. Best called in an effect, whose clean-up calls `off`.
   */
  on<Name extends keyof Callbacks>(name: Name, listener: NonNullable<Callbacks[Name]>): void;

  /** Takes away a listener that `on` has added. */
  off<Name extends keyof Callbacks>(name: Name, listener: NonNullable<Callbacks[Name]>): void;
}

/**
 * Calls for as long as the component is mounted; unmounting hangs up. The server renders it as `idle`. Mounting with
 * options that cannot be used throws a `CallError` with the code `INVALID_ARGUMENT`.
 *
 * ```tsx
 * import { useState } from "react";
 * import { useCall } from "@colloquy/sdk/react";
 * export function Caller({ newCall }: { newCall: () => Promise<string> }) {
 *   const { status, isActive, start, hangUp } = useCall();
 *   const [isAsking, setAsking] = useState(false);
 *   const call = async () => {
 *     setAsking(true);
 *     try {
 *       await start({ signedUrl: await newCall() });
 *     } catch (failure) {
 *       console.error(failure);
 *     } finally {
 *       setAsking(false);
 *     }
 *   };
 *   return isActive
 *     ? <button onClick={hangUp}>Hang up ({status})</button>
 *     : <button disabled={isAsking} onClick={call}>Call</button>;
 * }
 * ```
 */
export function useCall(options?: UseCallOptions): UseCall;
