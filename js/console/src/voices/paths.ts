// Paths of the voice library.

/** A voice of the library of a partner. */
export type VoiceAt = { partner: string; name: string };

/** Returns a path of the library of a partner. */
export const libraryPath = (...parts: (string | number)[]) => `/api/voices/${parts.map(encodeURIComponent).join("/")}`;

/** Returns the path of what belongs to a voice. */
export const voicePath = ({ partner, name }: VoiceAt, ...rest: (string | number)[]) => libraryPath(partner, name, ...rest);

/** Returns the path of what was made of a voice for a type. */
export const pathOfType = (at: VoiceAt, type: string, ...rest: string[]) =>
  `${voicePath(at, ...rest)}?${new URLSearchParams({ tts_type: type }).toString()}`;
