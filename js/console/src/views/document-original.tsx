// The original of a document: text as text, images, recordings and pages from blobs of safe types, anything else as a download.

import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import type { Schemas } from "../api";
import { type DocumentAt, download, readText, saveContent } from "../documents/contents";
import { type Showing, showingOf } from "../documents/media";
import { type Problem, toProblem } from "../problem";
import { Action } from "../ui/action";
import { formatBytes } from "../ui/format";
import { Icon } from "../ui/icon";
import { lazy } from "../ui/lazy";
import { useResource } from "../ui/resource";
import { Empty, Failed, Shown } from "../ui/states";
import { LongText } from "./document-text";

type DocumentView = Schemas["DocumentView"];
type Props = { at: DocumentAt; of: DocumentView };
type Media = Extract<Showing, { type: string }>;

/** Larger originals are loaded when the user asks for it. */
const MAX_UNASKED_BYTES = 20_000_000;
/** Larger PDF files are downloaded only: all of a file is in the memory of the page. */
const MAX_PDF_BYTES = 200_000_000;

const PdfOriginal = lazy(async () => (await import("./document-pdf")).PdfOriginal);
const Recording = lazy(async () => (await import("./document-recording")).Recording);

type Loaded = { url: Signal<string | null>; share: Signal<number>; problem: Signal<Problem | null> };

/** Loads an original into a blob of a given type. */
function useBlob(at: DocumentAt, type: string, version: string): Loaded {
  const [url, share, problem] = [useSignal<string | null>(null), useSignal(0), useSignal<Problem | null>(null)];
  useEffect(() => {
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
  }, [at.partner, at.base, at.id, type, version]);
  return { url, share, problem };
}

/** Shows an original at once, or when the user asks for it if it is large. */
function WhenWanted({ bytes, children }: { bytes: number; children: (onRetry: () => void) => ComponentChildren }) {
  const isWanted = useSignal(bytes <= MAX_UNASKED_BYTES);
  if (isWanted.value) return <>{children(() => (isWanted.value = false))}</>;
  return (
    <button type="button" onClick={() => (isWanted.value = true)}>
      <Icon name="play" /> Load {formatBytes(bytes)}
    </button>
  );
}

function MediaOriginal({ at, of, media, onRetry }: Props & { media: Media; onRetry: () => void }) {
  const hasFailed = useSignal(false);
  const { url, share, problem } = useBlob(at, media.type, of.content_hash ?? "");
  if (problem.value) return <Failed problem={problem.value} retry={onRetry} />;
  if (hasFailed.value) return <p class="none">This browser cannot show the file. Download it instead.</p>;
  if (!url.value) return <progress max={1} value={share.value} aria-label="Loading the original" />;
  if (media.kind === "image") return <img class="original" src={url.value} alt={of.name} onError={() => (hasFailed.value = true)} />;
  return <Recording at={at} name={of.name} kind={media.kind} url={url.value} version={of.content_hash ?? ""} />;
}

function PdfFile({ at, of, onRetry }: Props & { onRetry: () => void }) {
  return <PdfOriginal at={at} name={of.name} version={of.content_hash ?? ""} onRetry={onRetry} />;
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

/** Says what a file is that is not shown, and what to do instead. */
function NotShown({ of, why, children }: { of: DocumentView; why: string; children: ComponentChildren }) {
  return (
    <Empty icon="file-text" title={of.file_original ?? of.name}>
      <p>
        {of.media_type ?? "The file"} {typeof of.bytes === "number" && `(${formatBytes(of.bytes)})`} {why} Its text is under Digitized.
      </p>
      {children}
    </Empty>
  );
}

export function Original({ at, of }: Props) {
  const showing = showingOf(of.media_type);
  const bytes = of.bytes ?? 0;
  const save = () => saveContent(at, "original", of.file_original ?? of.name);
  const button = <Action icon="download" label="Download" busy="Downloading…" onRun={save} />;
  const isTooLarge = showing.kind === "pdf" && bytes > MAX_PDF_BYTES;
  if (showing.kind === "download" || isTooLarge) {
    return (
      <NotShown of={of} why={isTooLarge ? "is too large to be shown here." : "is not shown here."}>
        {button}
      </NotShown>
    );
  }
  return (
    <>
      <div class="actions">{button}</div>
      {showing.kind === "text" ? (
        <TextOriginal at={at} of={of} />
      ) : (
        <WhenWanted key={of.content_hash} bytes={bytes}>
          {(onRetry) =>
            "type" in showing ? <MediaOriginal at={at} of={of} media={showing} onRetry={onRetry} /> : <PdfFile at={at} of={of} onRetry={onRetry} />
          }
        </WhenWanted>
      )}
    </>
  );
}
