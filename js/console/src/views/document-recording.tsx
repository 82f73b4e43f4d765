// A recording or a film, with the words that were heard in it: those of now are marked, and each leads to its place.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { api } from "../api";
import type { DocumentAt } from "../documents/contents";
import { type Segment, mark, segmentAt } from "../documents/segments";
import { ask } from "../problem";
import { type Call, useResource } from "../ui/resource";
import { Shown } from "../ui/states";

/** Segments that are read: more than 20 hours of speech. */
const MAX_SEGMENTS = 5_000;

/** Reads the segments of a recording, up to {@link MAX_SEGMENTS}. */
async function readSegments({ partner, base, id }: DocumentAt, call: Call): Promise<Segment[]> {
  const segments: Segment[] = [];
  let cursor: string | null | undefined;
  do {
    const params = { path: { partner, kb: base, doc_id: id }, query: { ...(cursor && { cursor }) } };
    const page = await ask(api.GET("/api/document-transcript/{partner}/{kb}/{doc_id}", { ...call, params }));
    segments.push(...page.segments);
    cursor = page.next_cursor;
  } while (cursor && segments.length < MAX_SEGMENTS);
  return segments;
}

type WordsProps = { of: Segment[]; current: number; onSeek: (seconds: number) => void };

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
          <button type="button" aria-current={place === current ? "true" : undefined} onClick={() => onSeek(begin_ms / 1_000)}>
            <span class="at">{mark(begin_ms)}</span> <span dir="auto">{text}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

type Props = { at: DocumentAt; name: string; kind: "audio" | "video"; url: string; version: string; onFail: () => void };

export function Recording({ at, name, kind, url, version, onFail }: Props) {
  const { partner, base, id } = at;
  const player = useRef<HTMLMediaElement | null>(null);
  const ms = useSignal(0);
  const segments = useResource((call) => readSegments(at, call), [partner, base, id, version], { partner, kinds: ["document"], base, id });
  const follow = (event: Event & { currentTarget: HTMLMediaElement }) => (ms.value = event.currentTarget.currentTime * 1_000);
  const seek = (seconds: number) => {
    if (!player.current) return;
    player.current.currentTime = seconds;
    // A browser that refuses to play leaves the controls to the user.
    player.current.play().catch(() => {});
  };
  const take = (element: HTMLMediaElement | null) => void (player.current = element);
  const shared = { ref: take, controls: true, src: url, "aria-label": name, onError: onFail, onTimeUpdate: follow, onSeeking: follow };
  return (
    <div class="recording">
      {kind === "audio" ? <audio {...shared} /> : <video {...shared} />}
      <Shown of={segments}>{(of) => <Words of={of} current={segmentAt(of, ms.value)} onSeek={seek} />}</Shown>
    </div>
  );
}
