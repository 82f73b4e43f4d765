// The original of a document: text as text, images and recordings from blobs of safe types, anything else as a download.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Schemas } from "../api";
import { type DocumentAt, download, readText, saveContent } from "../documents/contents";
import { type Showing, showingOf } from "../documents/media";
import { type Problem, toProblem } from "../problem";
import { Action } from "../ui/action";
import { formatBytes } from "../ui/format";
import { Icon } from "../ui/icon";
import { useResource } from "../ui/resource";
import { Empty, Failed, Shown } from "../ui/states";
import { LongText } from "./document-text";

type DocumentView = Schemas["DocumentView"];
type Props = { at: DocumentAt; of: DocumentView };
type Media = Exclude<Showing, { kind: "text" | "download" }>;

/** Larger originals are loaded when the user asks for it. */
const MAX_UNASKED_BYTES = 20_000_000;

type Loaded = { url: Signal<string | null>; share: Signal<number>; problem: Signal<Problem | null> };

/** Loads an original into a blob of a given type. */
function useBlob(at: DocumentAt, type: string, version: string, isWanted: boolean): Loaded {
  const [url, share, problem] = [useSignal<string | null>(null), useSignal(0), useSignal<Problem | null>(null)];
  useEffect(() => {
    if (!isWanted) return;
    const stopped = new AbortController();
    let made: string | null = null;
    download(at, "original", stopped.signal, (now) => (share.value = now)).then(
      (blob) => {
        if (stopped.signal.aborted) return;
        made = URL.createObjectURL(new Blob([blob], { type }));
        url.value = made;
      },
      (error: unknown) => {
        if (!stopped.signal.aborted) problem.value = toProblem(error);
      },
    );
    return () => {
      stopped.abort();
      url.value = null;
      problem.value = null;
      if (made) URL.revokeObjectURL(made);
    };
  }, [at.partner, at.base, at.id, type, version, isWanted]);
  return { url, share, problem };
}

function Player({ media: { kind }, url, name, onFail }: { media: Media; url: string; name: string; onFail: () => void }) {
  if (kind === "image") return <img class="original" src={url} alt={name} onError={onFail} />;
  if (kind === "audio") return <audio controls src={url} aria-label={name} onError={onFail} />;
  return <video controls src={url} aria-label={name} onError={onFail} />;
}

function MediaOriginal({ at, of, media }: Props & { media: Media }) {
  const bytes = of.bytes ?? 0;
  const isWanted = useSignal(bytes <= MAX_UNASKED_BYTES);
  const hasFailed = useSignal(false);
  const { url, share, problem } = useBlob(at, media.type, of.content_hash ?? "", isWanted.value);
  if (problem.value) return <Failed problem={problem.value} retry={() => (isWanted.value = false)} />;
  if (hasFailed.value) return <p class="none">This browser cannot show the file. Download it instead.</p>;
  if (url.value) return <Player media={media} url={url.value} name={of.name} onFail={() => (hasFailed.value = true)} />;
  if (isWanted.value) return <progress max={1} value={share.value} aria-label="Loading the original" />;
  return (
    <button type="button" onClick={() => (isWanted.value = true)}>
      <Icon name="play" /> Load {formatBytes(bytes)}
    </button>
  );
}

function TextOriginal({ at, of }: Props) {
  const content = useResource((call) => readText(at, "original", call), [at.partner, at.base, at.id, of.content_hash]);
  return (
    <Shown of={content}>
      {({ content: text, format }) =>
        format === "base64" ? <p class="none">The file is not text. Download it instead.</p> : <LongText text={text} />
      }
    </Shown>
  );
}

export function Original({ at, of }: Props) {
  const showing = showingOf(of.media_type);
  const save = () => saveContent(at, "original", of.file_original ?? of.name);
  const button = <Action icon="download" label="Download" busy="Downloading…" onRun={save} />;
  if (showing.kind === "download") {
    return (
      <Empty icon="file-text" title={of.file_original ?? of.name}>
        <p>
          {of.media_type ?? "The file"} {typeof of.bytes === "number" && `(${formatBytes(of.bytes)})`} is not shown here. Its text is under Digitized.
        </p>
        {button}
      </Empty>
    );
  }
  return (
    <>
      <div class="actions">{button}</div>
      {showing.kind === "text" ? <TextOriginal at={at} of={of} /> : <MediaOriginal key={of.content_hash} at={at} of={of} media={showing} />}
    </>
  );
}
