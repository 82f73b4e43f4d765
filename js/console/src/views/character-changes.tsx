// The differences of two versions of a character, part by part.

import { useMemo } from "preact/hooks";

import type { Content } from "../characters/draft";
import { changedParts } from "../characters/parts";
import { Difference } from "./difference";

export function CharacterChanges({ before, after }: { before: Content; after: Content }) {
  const parts = useMemo(() => changedParts(before, after), [before, after]);
  if (parts.length === 0) return <p class="none">The versions are equal.</p>;
  return (
    <>
      {parts.map((part) => (
        <section key={part.title}>
          <h3>
            <bdi>{part.title}</bdi>
          </h3>
          <Difference before={part.before} after={part.after} />
        </section>
      ))}
    </>
  );
}
