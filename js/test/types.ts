// Compiled, never run: how customers use the types, and what the types must refuse.

import { CallError, CallManager, init } from "@colloquy/sdk";
import type { Callbacks, CallErrorCode, CallStatus, Config, Device } from "@colloquy/sdk";

const documented: Callbacks = {
  onCallStart: () => {},
  onCallError: () => {},
  onHangUp: () => {},
  onStatusUpdate: (status: string) => console.log(status),
};

const everything: Callbacks = {
  ...documented,
  onCallError: (error) => {
    const code: CallErrorCode = error.code;
    console.error(code, error.message);
  },
  onStatusUpdate: (status) => {
    const known: CallStatus = status;
    console.log(known);
  },
  onCallStarting() {},
  onConnected() {},
  onUserInfo: (info) => console.log(info.length),
  onRagInfo: ({ documents, count, total_tokens }) => {
    const shown: number = count ?? documents.length;
    console.log(shown, total_tokens, documents[0]?.fusion_score);
  },
  onTranscript: (line) => console.log(line.role, line.text, line.final, line.atMs),
  onAgentStateChange: (state) => console.log(state === "speaking"),
  onLevels: ({ microphone, speaker }) => console.log(microphone + speaker),
};

const config: Config = { characterRole: "Guide", personRole: "You", microphoneId: null, BACKEND_URL: "https://h" };

export async function use(signedUrl: string): Promise<void> {
  await init({ workletUrl: new URL("https://h/worklet.js") });
  const manager = new CallManager(everything, config);
  await manager.handleCall2("repo:acme", "guide", "key", { page: "start" });
  await manager.handleCall2(null, { description: "{}", personality: "A guide." }, "key");
  await manager.handleCall2(null, null, signedUrl);
  const { microphones, speakers } = await CallManager.getAvailableDevices();
  const chosen: Device | undefined = microphones.find((device) => device.isDefault);
  await manager.changeDevices(chosen?.deviceId ?? null, speakers[0]?.deviceId ?? null);
  manager.mute(true);
  const sent: boolean = manager.sendText("hello");
  if (sent && manager.getState() !== "idle") manager.hangUp();
  try {
    new CallManager(documented);
  } catch (error) {
    if (error instanceof CallError) console.log(error.code);
  }
}

// @ts-expect-error a required callback is missing
new CallManager({ onCallStart() {}, onCallError() {}, onHangUp() {} });
// @ts-expect-error no such key
new CallManager(documented, { microphone: "x" });
// @ts-expect-error a signed URL alone is no call
void new CallManager(documented).handleCall2("wss://h");
