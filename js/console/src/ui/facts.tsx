// Facts about one entry, as names with values.

import type { ComponentChildren } from "preact";

/** A name with its value. One whose value is null, undefined or false is left out. */
export type NamedValue = readonly [name: string, value: ComponentChildren];

export function Facts({ of }: { of: readonly NamedValue[] }) {
  return (
    <dl>
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => [<dt key={`${name} name`}>{name}</dt>, <dd key={`${name} value`}>{value}</dd>])}
    </dl>
  );
}
