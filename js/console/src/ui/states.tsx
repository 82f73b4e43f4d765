// States of a view: loading, failed, empty, and out of date.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Problem } from "../problem";
import { Icon, type IconName } from "./icon";
import type { Resource } from "./resource";

type EmptyProps = { icon: IconName; title: string; children?: ComponentChildren };

/** An empty list. The children name the next step. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A resource that could not be read. */
export function Failed({ problem, retry }: { problem: Problem; retry: () => void }) {
  const isForbidden = problem.status === 403;
  // A request that is wrong stays so.
  const isFinal = problem.status === 400;
  return (
    <div class="empty failed" role="alert">
      <Icon name="triangle-alert" />
      <h2>{isForbidden ? "Your key does not allow this" : problem.message}</h2>
      {isForbidden ? (
        <p>{problem.message}</p>
      ) : (
        !isFinal && (
          <button type="button" onClick={retry}>
            Try again
          </button>
        )
      )}
    </div>
  );
}

/** A resource that is read for the first time. */
export function Loading() {
  return (
    <div class="loading" role="status">
      Loading…
    </div>
  );
}

/** Shows a resource. Data stays visible during a reload, and after one that failed. */
export function Shown<T>({ of, children }: { of: Resource<T>; children: (data: T) => ComponentChildren }) {
  const { data, problem, reload } = of;
  const retry = () => void reload();
  if (data.value === undefined) return problem.value ? <Failed problem={problem.value} retry={retry} /> : <Loading />;
  return (
    <>
      {problem.value && (
        <div class="notice" role="alert">
          <Icon name="triangle-alert" />
          <span>This may be out of date. {problem.value.message}</span>
          <button type="button" onClick={retry}>
            Try again
          </button>
        </div>
      )}
      {children(data.value)}
    </>
  );
}

type MoreProps = {
  next: string | null;
  isLoading: boolean;
  more: () => Promise<void>;
  /** True if the next page is read before somebody gets to the end of this one. */
  isEndless?: boolean;
};

/** The button below a list that has another page. */
export function More({ next, isLoading, more, isEndless = false }: MoreProps) {
  const below = useRef<HTMLDivElement>(null);
  const isReady = isEndless && !isLoading;
  useEffect(() => {
    if (!below.current || !isReady) return;
    const observer = new IntersectionObserver((entries) => entries.at(-1)?.isIntersecting && void more(), { rootMargin: "1000px 0px" });
    observer.observe(below.current);
    return () => observer.disconnect();
  }, [isReady, next]);
  if (next === null) return null;
  return (
    <div class="more" ref={below}>
      <button type="button" aria-disabled={isLoading} onClick={() => !isLoading && void more()}>
        {isLoading ? "Loading…" : "Show more"}
      </button>
    </div>
  );
}

/** A table that scrolls sideways where the screen is narrow. */
export function Table({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}
