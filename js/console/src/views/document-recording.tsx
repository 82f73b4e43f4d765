// A recording or a film, with the words that were heard in it: those of now are marked, and each leads to its place.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { api } from "../api";
import type { DocumentAt } from "../documents/contents";
import { type Segment, isBeyond, mark, segmentAt } from "../documents/segments";
import { type Page, ask } from "../problem";
import { type Call, usePages } from "../ui/resource";
import { More, Shown } from "../ui/states";

/** Reads a page of the segments of a recording. */
async function readSegments({ partner, base, id }: DocumentAt, call: Call, cursor?: string): Promise<Page<Segment>> {
  const params = { path: { partner, kb: base, doc_id: id }, query: { ...(cursor && { cursor }) } };
  const { segments, next_cursor } = await ask(api.GET("/api/document-transcript/{partner}/{kb}/{doc_id}", { ...call, params }));
  return { entries: segments, next: next_cursor ?? null };
}

type WordsProps = {
  of: Segment[];
  current: number;
  /** Null where the sound cannot be played. */
  onSeek: ((seconds: number) => void) | null;
};

function Words({ of, current, onSeek }: WordsProps) {
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const [box, line] = [list.current, list.current?.children[current]];
    if (!box || !(line instanceof HTMLElement) || box.querySelector(":focus-visible")) return;
    const [begin, end] = [line.offsetTop, line.offsetTop + line.offsetHeight];
    if (begin < box.scrollTop) box.scrollTop = begin;
    else if (end > box.scrollTop + box.clientHeight) box.scrollTop = end - box.clientHeight;
  }, [current]);
  if (of.length === 0) return <p class="none">No words of this recording are kept with their times. Its text is under Digitized.</p>;
  return (
    <ol ref={list} class="segments-said" aria-label="Words">
      {of.map(({ begin_ms, text }, place) => (
        <li key={begin_ms}>
          <button
            type="button"
            aria-current={place === current ? "true" : undefined}
            aria-disabled={onSeek === null}
            onClick={() => onSeek?.(begin_ms / 1_000)}
          >
            <span class="at">{mark(begin_ms)}</span> <span dir="auto">{text}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

type Props = { at: DocumentAt; name: string; kind: "audio" | "video"; url: string; version: string };

export function Recording({ at, name, kind, url, version }: Props) {
  const { partner, base, id } = at;
  const player = useRef<HTMLMediaElement | null>(null);
  const ms = useSignal(0);
  const hasFailed = useSignal(false);
  const segments = usePages((call, cursor) => readSegments(at, call, cursor), [partner, base, id, version], { partner, kinds: ["document"], base, id });
  // The words follow the sound beyond those that are loaded.
  const wantsMore = isBeyond(segments.data.value, ms.value) && !segments.isLoading.value && !segments.problem.value;
  useEffect(() => {
    if (wantsMore) void segments.more();
  }, [wantsMore]);
  const follow = (event: Event & { currentTarget: HTMLMediaElement }) => (ms.value = event.currentTarget.currentTime * 1_000);
  const seek = (seconds: number) => {
    if (!player.current) return;
    player.current.currentTime = seconds;
    // A browser that refuses to play leaves the controls to the user.
    player.current.play().catch(() => {});
  };
  const take = (element: HTMLMediaElement | null) => void (player.current = element);
  const shared = { ref: take, controls: true, src: url, "aria-label": name, onError: () => (hasFailed.value = true), onTimeUpdate: follow, onSeeking: follow };
  return (
    <div class="recording">
      {hasFailed.value ? (
        <p class="none" role="alert">
          This browser cannot play the file. Download it instead.
        </p>
      ) : kind === "audio" ? (
        <audio {...shared} />
      ) : (
        <video {...shared} />
      )}
      <Shown of={segments}>
        {({ entries, next }) => (
          <>
            <Words of={entries} current={segmentAt(entries, ms.value)} onSeek={hasFailed.value ? null : seek} />
            {next !== null && <p class="hint">There are more words. They are loaded as the sound gets there.</p>}
            <More next={next} isLoading={segments.isLoading.value} more={segments.more} />
          </>
        )}
      </Shown>
    </div>
  );
}
