// The parameters of a character that the view has no own place for.

/** Parameters that the view shows in their own places. */
const SHOWN = new Set([
  ...["name", "robot_name", "person_name", "language", "voice", "greetings", "documents", "profile_schema"],
  ...["rag_enabled", "rag_index_required", "patience_message", "patience_ms", "interruption_message", "conversation_prefix"],
]);

const isEmpty = (value: unknown) => value === null || value === undefined || (Array.isArray(value) && value.length === 0);

/** Returns the parameters that are not shown elsewhere and are set. */
export function otherParameters(parameters: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parameters).filter(([name, value]) => !SHOWN.has(name) && !isEmpty(value)));
}

/** Returns the version that an address names; null for none, or one that is malformed. */
export function versionOf(text: string | null): number | null {
  return /^[1-9]\d{0,14}$/.test(text ?? "") ? Number(text) : null;
}
