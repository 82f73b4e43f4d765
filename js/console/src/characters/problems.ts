// Problems of a draft, field by field.

import type { Schemas } from "../api";

export type FieldProblem = Schemas["CharacterProblem"];

/** Returns the problems of a field and of what is inside it; without `isDeep`, of the field alone. */
export function problemsOf(problems: readonly FieldProblem[], field: string, isDeep = false): FieldProblem[] {
  return problems.filter((problem) => problem.field === field || (isDeep && (problem.field.startsWith(`${field}.`) || problem.field.startsWith(`${field}[`))));
}

/** Returns a problem in words, with its place in the text. */
export function problemWords({ message, line, column }: FieldProblem): string {
  if (!line) return message;
  return column ? `Line ${line}, column ${column}: ${message}` : `Line ${line}: ${message}`;
}

/** Returns the values that were filled in. */
export const given = (values: Record<string, string>) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));

/** Controls of the form that are named as their parameter. */
const NAMED = new Set([
  ...["personality", "name", "robot_name", "person_name", "language", "interruption_message", "conversation_prefix"],
  ...["patience_ms", "rag_enabled", "rag_index_required"],
]);

/** Returns the names of the controls that a problem is about, the best first, of which the form has one; none if there is no control. */
export function controlsOf(field: string): string[] {
  const path = field.replace(/^parameters\./, "");
  const [, list, place = "0"] = /^(greetings|documents)(?:\[(\d+)\]|$)/.exec(path) ?? [];
  if (list === "greetings") return [`greeting-${place}`];
  if (list === "documents") return [path.endsWith(".text") ? `text-${place}` : `title-${place}`];
  if (/^voice(\.|$)/.test(path)) return [path === "voice.speed" ? "speed" : "voice"];
  if (/^profile_schema(\.|$)/.test(path)) return ["facts"];
  if (field === "name") return ["id"];
  // The sentence has a field only if the character has one of its own.
  if (field === "parameters.patience_message") return ["patience_message", "patience"];
  return NAMED.has(path) ? [path] : [];
}

/** Returns the UTF-16 offset of a line and a column, both counted from 1, the column in code points. */
export function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
  const inLine = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  return Math.min(text.length, before + inLine);
}
