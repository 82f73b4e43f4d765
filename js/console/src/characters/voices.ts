// The voices of the server, and sentences spoken by them.

import { FOREGROUND, type Schemas, api } from "../api";
import { type Answer, ask, problemOf, received } from "../problem";
import type { Call } from "../ui/resource";

export type Voices = Schemas["Voices"];

/** The longest text that a preview speaks, as the API has it. */
export const MAX_SPOKEN = 2_000;

/** Reads the voices of the server, and those of the partner's library. */
export const readVoices = (call: Call, partner: string): Promise<Voices> => ask(api.GET("/v2/audio/voices", { ...call, params: { query: { partner } } }));

/** Has a voice speak a text; returns the sound. */
export async function speak(model: string, voice: string, input: string, speed: number | null, signal: AbortSignal): Promise<Blob> {
  const body = { model, voice, input: [...input].slice(0, MAX_SPOKEN).join(""), language: "auto", response_format: "mp3" as const, ...(speed !== null && { speed }) };
  const asked = api.POST("/v2/audio/speech", { headers: FOREGROUND, signal, body, parseAs: "blob" });
  const answer = await received(asked as Promise<Answer<Blob>>);
  if (!answer.response.ok || !answer.data) throw problemOf(answer);
  return new Blob([answer.data], { type: "audio/mpeg" });
}
