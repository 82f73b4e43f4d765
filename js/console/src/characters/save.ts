// Saves characters, and notices what others saved meanwhile.

import { FOREGROUND, type Schemas, api } from "../api";
import { ask } from "../problem";
import { type Draft, contentOf } from "./draft";

export type CharacterView = Schemas["CharacterView"];

/** Creates a character. */
export function create(partner: string, draft: Draft): Promise<CharacterView> {
  const body = { name: draft.name, ...contentOf(draft) };
  return ask(api.POST("/api/characters/{partner}", { headers: FOREGROUND, params: { path: { partner } }, body }));
}

/** Saves a version that follows another. Fails with 409 if that is not the newest. */
export function update(partner: string, name: string, draft: Draft, version: number): Promise<CharacterView> {
  const params = { path: { partner, name } };
  return ask(api.PUT("/api/characters/{partner}/{name}", { headers: FOREGROUND, params, body: { ...contentOf(draft), version } }));
}

export const readNewest = (partner: string, name: string): Promise<CharacterView> =>
  ask(api.GET("/api/characters/{partner}/{name}", { params: { path: { partner, name } } }));

export const readVersion = (partner: string, name: string, version: number): Promise<CharacterView> =>
  ask(api.GET("/api/characters/{partner}/{name}/versions/{version}", { params: { path: { partner, name, version } } }));
