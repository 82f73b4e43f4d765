// Uploads of dialogs, which end when the dialog is closed.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { formatPercent } from "../ui/format";
import { upload } from "../voices/uploading";

/** Returns a function that sends a form, and its progress: null while nothing is sent. */
export function useUpload() {
  const share = useSignal<number | null>(null);
  const stopped = useRef(new AbortController());
  useEffect(() => () => stopped.current.abort(), []);
  const send = async <T,>(path: string, body: FormData): Promise<T> => {
    share.value = 0;
    try {
      return await upload<T>({ path, body, signal: stopped.current.signal, onProgress: (now) => (share.value = now) });
    } finally {
      share.value = null;
    }
  };
  return { share, send };
}

export function UploadProgress({ share }: { share: Signal<number | null> }) {
  if (share.value === null) return null;
  // The server answers when it has stored and looked at the recording.
  const words = share.value < 1 ? `${formatPercent(share.value)} sent` : "Sent. The server looks at the recording…";
  return (
    <p class="upload-progress">
      <progress max={1} value={share.value} aria-label="Upload" /> {words}
    </p>
  );
}
