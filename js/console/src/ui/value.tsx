// Values of any type, as text.

/** Text with its line breaks. */
export function Text({ children }: { children: string }) {
  return (
    <pre class="text" dir="auto">
      {children}
    </pre>
  );
}

/** A text as it is, anything else as JSON. */
export function Value({ of }: { of: unknown }) {
  if (typeof of === "string") return <span class="text">{of}</span>;
  if (typeof of !== "object" || of === null) return <>{JSON.stringify(of)}</>;
  return <Text>{JSON.stringify(of, null, 2)}</Text>;
}

/** Names and values. */
export function Values({ of }: { of: Record<string, unknown> }) {
  return (
    <dl>
      {Object.entries(of).map(([name, value]) => [
        <dt key={`${name} name`}>{name}</dt>,
        <dd key={`${name} value`}>
          <Value of={value} />
        </dd>,
      ])}
    </dl>
  );
}
