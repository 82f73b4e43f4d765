// Files of the voice library.

import { DOWNLOAD_TYPE } from "../documents/media";
import { save, transfer } from "../documents/transfer";

/** Reads a sound. */
export const readSound = (path: string, signal: AbortSignal): Promise<Blob> => transfer({ method: "GET", path, signal });

/** Downloads a file. */
export async function saveFile(path: string, name: string): Promise<void> {
  const blob = await transfer({ method: "GET", path, signal: new AbortController().signal });
  save(new Blob([blob], { type: DOWNLOAD_TYPE }), name);
}
