// The pages of a PDF file. Those in sight are drawn.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { type DocumentAt, download } from "../documents/contents";
import { drawnRange, indexAt, nextScale } from "../documents/pages";
import { Pdf, type Size, clear } from "../documents/pdf";
import { type Problem, toProblem } from "../problem";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Failed } from "../ui/states";

/** Pages that are shown. */
const MAX_PAGES = 3_000;
/** Pixels of CSS for a point of the file, at a scale of 1. */
const PIXELS_PER_POINT = 96 / 72;
/** Room around the pages, in pixels. */
const MARGIN = 24;

type PageProps = { pdf: Pdf; number: number; scale: number; isNear: boolean };

function Page({ pdf, number, scale, isNear }: PageProps) {
  const place = useRef<HTMLDivElement>(null);
  const size = useSignal<Size>(pdf.first);
  const hasFailed = useSignal(false);
  useEffect(() => {
    const holder = place.current;
    if (!isNear || !holder) return;
    const stopped = new AbortController();
    hasFailed.value = false;
    pdf.draw(number, scale * PIXELS_PER_POINT, holder, stopped.signal).then(
      (found) => (size.value = found),
      () => (hasFailed.value = !stopped.signal.aborted),
    );
    return () => stopped.abort();
  }, [pdf, number, scale, isNear]);
  useEffect(() => {
    const holder = place.current;
    if (isNear && holder) return () => clear(holder);
    return undefined;
  }, [pdf, isNear]);
  const { width, height } = size.value;
  const pixels = (points: number) => `${Math.floor(points * scale * PIXELS_PER_POINT)}px`;
  return (
    <div class="pdf-page" role="group" aria-label={`Page ${number}`} style={{ width: pixels(width), height: pixels(height) }}>
      <div ref={place} class="pdf-drawn" />
      {hasFailed.value && <p class="none">This page cannot be shown.</p>}
    </div>
  );
}

type BarProps = { count: number; current: number; scale: number; isFit: boolean; onGo: (page: number) => void; onScale: (scale: number | null) => void };

function Bar({ count, current, scale, isFit, onGo, onScale }: BarProps) {
  const go = (event: Event & { currentTarget: HTMLInputElement }) => {
    const page = event.currentTarget.valueAsNumber;
    if (Number.isInteger(page) && page >= 1 && page <= count) onGo(page);
    else event.currentTarget.value = String(current);
  };
  return (
    <div class="pdf-bar" role="toolbar" aria-label="Pages and size">
      <button type="button" aria-label="Previous page" aria-disabled={current <= 1} onClick={() => current > 1 && onGo(current - 1)}>
        <Icon name="arrow-up" />
      </button>
      <button type="button" aria-label="Next page" aria-disabled={current >= count} onClick={() => current < count && onGo(current + 1)}>
        <Icon name="arrow-down" />
      </button>
      <label>
        Page <input type="number" name="page" min={1} max={count} value={current} onChange={go} /> of {formatNumber(count)}
      </label>
      <button type="button" aria-label="Zoom out" onClick={() => onScale(nextScale(scale, -1))}>
        −
      </button>
      <output aria-label="Zoom">{Math.round(scale * 100)} %</output>
      <button type="button" aria-label="Zoom in" onClick={() => onScale(nextScale(scale, 1))}>
        +
      </button>
      <button type="button" aria-pressed={isFit} onClick={() => onScale(null)}>
        Fit width
      </button>
    </div>
  );
}

function Pages({ pdf, name }: { pdf: Pdf; name: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, top] = [useSignal(0), useSignal(0)];
  const [near, current] = [useSignal<[number, number]>([0, -1]), useSignal(1)];
  /** Null fits the width. */
  const chosen = useSignal<number | null>(null);
  const scale = useComputed(() => chosen.value ?? Math.max(0.1, (width.value - MARGIN) / (pdf.first.width * PIXELS_PER_POINT)));
  const count = Math.min(pdf.count, MAX_PAGES);

  const look = () => {
    const { children, scrollTop, clientHeight } = frame.current as HTMLDivElement;
    const pages = children as unknown as ArrayLike<HTMLElement>;
    const [first, last] = drawnRange(pages, scrollTop, clientHeight);
    if (first !== near.peek()[0] || last !== near.peek()[1]) near.value = [first, last];
    current.value = indexAt(pages, scrollTop + clientHeight / 3) + 1;
    const page = pages[current.peek() - 1];
    top.value = page ? (scrollTop - page.offsetTop) / page.offsetHeight : 0;
  };
  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    const observer = new ResizeObserver(() => {
      width.value = element.clientWidth;
      look();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const go = (page: number) => {
    const element = frame.current as HTMLDivElement;
    const to = element.children[page - 1];
    if (to instanceof HTMLElement) element.scrollTop = to.offsetTop - MARGIN / 2;
  };
  // The part of the page that is in sight stays there when the size changes. The observer would look at the place of before.
  const shown = scale.value;
  useLayoutEffect(() => {
    const element = frame.current as HTMLDivElement;
    const page = element.children[current.peek() - 1];
    if (page instanceof HTMLElement) element.scrollTop = page.offsetTop + top.peek() * page.offsetHeight;
    look();
  }, [shown]);
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      "+": () => (chosen.value = nextScale(scale.peek(), 1)),
      "-": () => (chosen.value = nextScale(scale.peek(), -1)),
      "0": () => (chosen.value = null),
      n: () => go(Math.min(current.peek() + 1, count)),
      p: () => go(Math.max(current.peek() - 1, 1)),
      Home: () => go(1),
      End: () => go(count),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  const [first, last] = near.value;
  return (
    <div class="pdf">
      <Bar count={count} current={current.value} scale={shown} isFit={chosen.value === null} onGo={go} onScale={(next) => (chosen.value = next)} />
      <div ref={frame} class="pdf-pages" role="region" aria-label={`Pages of ${name}`} tabIndex={0} onScroll={look} onKeyDown={press}>
        {Array.from({ length: count }, (_, index) => (
          <Page key={index} pdf={pdf} number={index + 1} scale={shown} isNear={width.value > 0 && index >= first && index <= last} />
        ))}
      </div>
      <p class="hint">
        {pdf.count > count && `${formatNumber(pdf.count - count)} more pages are in the file; download it to see them. `}
        Keys: + and − for the size, 0 to fit the width, n and p for the next and the previous page.
      </p>
    </div>
  );
}

/** A question for the password of a file. */
type Question = { isWrong: boolean; answer: (password: string) => void };

/** Asks for the password of a file, which stays in the page. */
function Password({ of }: { of: Question }) {
  const text = useSignal("");
  const submit = (event: Event) => {
    event.preventDefault();
    of.answer(text.peek());
  };
  return (
    <form class="pdf-password" onSubmit={submit}>
      <label>
        Password of the file
        <input
          type="password"
          autocomplete="off"
          aria-describedby="pdf-password-hint"
          aria-invalid={of.isWrong}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <button type="submit">Open</button>
      <p class="error" role="alert">
        {of.isWrong && "The password is wrong."}
      </p>
      <p id="pdf-password-hint" class="hint">
        The file is protected by a password. The password stays in this page: it is neither sent nor kept.
      </p>
    </form>
  );
}

type OriginalProps = { at: DocumentAt; name: string; version: string; onRetry: () => void };

/** The original of a document that is a PDF file. */
export function PdfOriginal({ at, name, version, onRetry }: OriginalProps) {
  const pdf = useSignal<Pdf | null>(null);
  const share = useSignal(0);
  const problem = useSignal<Problem | null>(null);
  const question = useSignal<Question | null>(null);
  useEffect(() => {
    const stopped = new AbortController();
    let opened: Pdf | null = null;
    const askPassword = (isWrong: boolean) =>
      new Promise<string>((resolve, reject) => {
        const answer = (password: string) => {
          question.value = null;
          resolve(password);
        };
        question.value = { isWrong, answer };
        // Ends the worker of a file that nobody waits for.
        stopped.signal.addEventListener("abort", () => reject(new Error("the page was left")), { once: true });
      });
    const open = async () => {
      const blob = await download(at, "original", stopped.signal, (now) => (share.value = now));
      opened = await Pdf.open(await blob.arrayBuffer(), askPassword);
      if (stopped.signal.aborted) return opened.close();
      opened.onFailed((failure) => {
        if (!stopped.signal.aborted) problem.value = failure;
      });
      pdf.value = opened;
    };
    open().catch((error: unknown) => {
      if (!stopped.signal.aborted) problem.value = toProblem(error);
    });
    return () => {
      stopped.abort();
      opened?.close();
    };
  }, [at.partner, at.base, at.id, version]);
  if (problem.value) return <Failed problem={problem.value} retry={onRetry} />;
  if (question.value) return <Password of={question.value} />;
  if (!pdf.value) return <progress max={1} value={share.value} aria-label="Loading the original" />;
  return <Pages pdf={pdf.value} name={name} />;
}
