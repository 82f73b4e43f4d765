// Compiled, never run: how customers use the types, and what the types must refuse.

import { CallError, CallManager, init } from "@colloquy/sdk";
import type {
  AgentState, AudioOptions, CallErrorCode, CallStats, CallStatus, Callbacks, CallStart, CheckReport, Config, CustomCharacter, Device,
  Devices, HangUpReason, InitOptions, Levels, RagData, RagDocument, TranscriptLine,
} from "@colloquy/sdk";
import type {} from "@colloquy/sdk/global";
import * as inline from "@colloquy/sdk/inline";
import { useCall } from "@colloquy/sdk/react";
import type { CallTarget, UseCall, UseCallOptions } from "@colloquy/sdk/react";

const documented: Callbacks = {
  onCallStart: () => {},
  onCallError: () => {},
  onHangUp: () => {},
  onStatusUpdate: (status: string) => console.log(status),
};

const everything: Required<Callbacks> = {
  ...documented,
  onCallStart: ({ callId }: CallStart) => console.log(callId?.length),
  onHangUp: (reason: HangUpReason) => console.log(reason === "time_limit"),
  onCallError: (error) => {
    const code: CallErrorCode = error.code;
    const fatal: boolean = error.fatal;
    console.error(code, fatal, error.message, error.cause);
  },
  onStatusUpdate: (status) => {
    const known: CallStatus = status;
    console.log(known);
  },
  onCallStarting() {},
  onConnected() {},
  onUserInfo: (info) => console.log(info.length),
  onRagInfo: (data: RagData) => {
    const first: RagDocument | undefined = data.documents[0];
    const shown: number = data.count ?? data.documents.length;
    console.log(shown, data.total_tokens, first?.title, first?.fusion_score, first?.token_count);
  },
  onTranscript: (line: TranscriptLine) => {
    const by: "user" | "bot" = line.originator;
    console.log(line.id, by, line.role, line.text, line.final, line.atMs);
  },
  onAgentStateChange: (state: AgentState) => console.log(state === "speaking"),
  onLevels: ({ microphone, speaker }: Levels) => console.log(microphone + speaker),
  onStats: (stats: CallStats) => {
    const quality: "good" | "fair" | "poor" = stats.quality;
    const rates: (number | null)[] = [stats.bitrateSent, stats.bitrateReceived, stats.roundTripMs, stats.jitterMs];
    const path: (string | null)[] = [stats.candidateType, stats.protocol];
    console.log(quality, rates, path, stats.lossSent ?? 0, stats.lossReceived + stats.concealed);
  },
  onDevicesChanged: ({ microphones, speakers }: Devices) => console.log(microphones.length, speakers.length),
  onAudioBlockedChange: (isBlocked: boolean) => console.log(isBlocked),
  onError: (error: CallError) => console.error(error.name === "CallError"),
};

const audio: AudioOptions = { echoCancellation: true, noiseSuppression: false, autoGainControl: null };
const config: Config = {
  characterRole: "Guide",
  personRole: "You",
  microphoneId: null,
  speakerId: null,
  backendUrl: null,
  BACKEND_URL: "https://h",
  callTimeLimitSeconds: 60,
  characterParams: { mood: "calm" },
  historyElement: document.body,
  audio,
  iceServers: [{ urls: "turn:h", username: "u", credential: "c" }],
  iceTransportPolicy: "relay",
  wakeLock: false,
};

export async function use(signedUrl: string): Promise<void> {
  const where: InitOptions = { wasmUrl: "/colloquy_sdk_bg.wasm", workletUrl: new URL("https://h/worklet.js") };
  await init(where);
  const manager = new CallManager(everything, config);
  await manager.handleCall2("repo:acme", "guide", "key", { page: "start" });
  const custom: CustomCharacter = { description: "{}", personality: "A guide." };
  await manager.handleCall2(null, custom, "key");
  await manager.handleCall2(null, null, signedUrl);
  await manager.startAudio();
  const { microphones, speakers } = await CallManager.getAvailableDevices();
  const chosen: Device | undefined = microphones.find((device) => device.isDefault && device.label);
  await manager.changeDevices(chosen?.deviceId ?? null, speakers[0]?.deviceId ?? null);
  manager.mute(true);
  const facts: [string | null, boolean] = [manager.callId, manager.isMuted];
  const heard = (line: TranscriptLine) => console.log(line.id, facts);
  manager.on("onTranscript", heard).on("onLevels", ({ speaker }) => console.log(speaker)).off("onTranscript", heard);
  const sent: boolean = manager.sendText("hello");
  if (sent && manager.getState() !== "idle") manager.hangUp();
  try {
    new CallManager(documented, { historyElement: "history" });
  } catch (error) {
    if (error instanceof CallError && error.fatal) console.log(error.code);
  }
  manager.destroy();
}

export async function check(): Promise<string> {
  const report: CheckReport = await CallManager.preCallCheck({ iceTransportPolicy: "all" });
  const { ok, permission, microphones, speakers, backend, media } = report;
  if (!backend.ok) return backend.message;
  if (!media.ok) return media.code;
  return `${ok} ${permission === "prompt"} ${microphones} ${speakers} ${backend.ms} ${media.ms} ${media.protocol}`;
}

export async function elsewhere(): Promise<CallManager[]> {
  await inline.init();
  await Colloquy.init({ wasmUrl: "/wasm" });
  const failure: CallError = new window.Colloquy.CallError("SERVER", "message", { cause: 1, fatal: true });
  console.log(failure);
  return [new inline.CallManager(documented), new Colloquy.CallManager(documented, config)];
}

export function Caller(signedUrl: string): string {
  const options: UseCallOptions = { ...config, onTranscript: ({ text }) => console.log(text) };
  const call: UseCall = useCall(options);
  const { status, isActive, agentState, transcript, muted, error } = call;
  const target: CallTarget = { partner: "repo:acme", character: "guide", apiKey: "key" };
  const done: Promise<void>[] = [
    call.start({ signedUrl }), call.start(target, { page: "start" }), call.changeDevices(null, "speaker"), call.startAudio(),
  ];
  call.mute(!muted);
  if (isActive && call.sendText("hello")) call.hangUp();
  call.on("onHangUp", (reason) => console.log(reason === call.hangUpReason, call.callId));
  call.off("onHangUp", console.log);
  const state: AgentState | null = agentState;
  const shown: "idle" | CallStatus = status;
  return [shown, state, error?.code, error?.fatal, transcript.map(({ role }) => role), done.length].join();
}
useCall();

// @ts-expect-error a required callback is missing
new CallManager({ onCallStart() {}, onCallError() {}, onHangUp() {} });
// @ts-expect-error no such key
new CallManager(documented, { microphone: "x" });
// @ts-expect-error no such event
new CallManager(documented).on("onRing", () => {});
// @ts-expect-error the listener gets a status
new CallManager(documented).on("onStatusUpdate", (line: TranscriptLine) => console.log(line));
// @ts-expect-error it is read only
new CallManager(documented).callId = "x";
// @ts-expect-error no such policy
new CallManager(documented, { iceTransportPolicy: "none" });
// @ts-expect-error a signed URL alone is no call
void new CallManager(documented).handleCall2("wss://h");
// @ts-expect-error no such code
new CallError("OTHER", "message");
// @ts-expect-error an API key needs a character
void useCall().start({ apiKey: "key" });
// @ts-expect-error no such callback
useCall({ onRing() {} });
