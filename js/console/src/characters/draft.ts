// A character that is being written: its fields as people edit them, and as the API has them.

import type { Schemas } from "../api";

export type Parameters = Record<string, unknown>;
/** A field that calls find out about the visitor. `others` is what the console does not edit of it. */
export type Fact = { name: string; description: string; others: Record<string, unknown> };

/** `facts` is null if the character leaves them to the server. `parameters` has all others, also those that the console does not know. */
export type Draft = { name: string; personality: string; parameters: Parameters; facts: Fact[] | null };

/** The content of a version. */
export type Content = { personality: string; parameters: Schemas["CharacterParameters"] };

export const EMPTY: Draft = { name: "", personality: "", parameters: {}, facts: null };

const asObject = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? { ...value } : {});

function factOf([name, value]: [string, unknown]): Fact {
  const { description, ...others } = asObject(value);
  return { name, description: typeof description === "string" ? description : "", others };
}

/** Returns the draft of a version. */
export function draftOf(name: string, { personality, parameters }: Content): Draft {
  const { profile_schema: schema, ...others } = parameters as Parameters;
  const facts = schema === undefined || schema === null ? null : Object.entries(asObject(schema)).map(factOf);
  return { name, personality, parameters: others, facts };
}

/** Returns what a draft saves. */
export function contentOf({ personality, parameters, facts }: Draft): Content {
  const schema = facts?.map(({ name, description, others }) => {
    const described = description === "" ? {} : { description };
    return [name, { type: "string", ...others, ...described }];
  });
  const all = { ...parameters, ...(schema && { profile_schema: Object.fromEntries(schema) }) };
  return { personality, parameters: all as Content["parameters"] };
}

/** The source of the fields that a call finds out: the server, the character, or none. */
export type FactsChoice = "server" | "own" | "none";

export const factsChoice = ({ facts }: Draft): FactsChoice => (facts === null ? "server" : facts.length === 0 ? "none" : "own");

const EMPTY_FACT: Fact = { name: "", description: "", others: {} };

/** Returns a draft with another choice; `typed` are the fields that it had before others were chosen. */
export function withFactsChoice(draft: Draft, choice: FactsChoice, typed: readonly Fact[]): Draft {
  if (choice === "own") return { ...draft, facts: typed.length > 0 ? [...typed] : [EMPTY_FACT] };
  return { ...draft, facts: choice === "none" ? [] : null };
}

/** Returns the names that several facts have: saving would keep one of each. */
export function repeatedFacts({ facts }: Draft): string[] {
  const names = (facts ?? []).map(({ name }) => name);
  return [...new Set(names.filter((name, place) => names.indexOf(name) !== place))];
}

/** Sets a parameter; `undefined` removes it. */
export function withParameter(draft: Draft, name: string, value: unknown): Draft {
  const { [name]: _, ...others } = draft.parameters;
  if (value === undefined) return { ...draft, parameters: others };
  return { ...draft, parameters: { ...draft.parameters, [name]: value } };
}

export const textOf = ({ parameters }: Draft, name: string) => (typeof parameters[name] === "string" ? (parameters[name] as string) : "");
export const listOf = <T>({ parameters }: Draft, name: string): T[] => (Array.isArray(parameters[name]) ? (parameters[name] as T[]) : []);

/** The voice of a character: its id, empty for the server's, and its speed; null for the usual one. */
export type Voice = { id: string; speed: number | null };

/** Returns the voice, in whichever form it is written. */
export function voiceOf({ parameters }: Draft): Voice {
  const { voice } = parameters;
  if (typeof voice === "string") return { id: voice, speed: null };
  const { id, voice: other, speed } = asObject(voice);
  const named = [id, other].find((value) => typeof value === "string") as string | undefined;
  return { id: named ?? "", speed: typeof speed === "number" ? speed : null };
}

/** Writes a voice: as its id where that says all, else as an object, whose other fields are kept. */
export function withVoice(draft: Draft, { id, speed }: Voice): Draft {
  const before = draft.parameters["voice"];
  const { id: _, voice: __, speed: ___, ...others } = typeof before === "string" ? {} : asObject(before);
  const voice = { ...(id !== "" && { id }), ...(speed !== null && { speed }), ...others };
  const isNameOnly = Object.keys(voice).length === 1 && id !== "";
  return withParameter(draft, "voice", Object.keys(voice).length === 0 ? undefined : isNameOnly ? id : voice);
}

/** Returns true if two values are the same JSON, whatever the order of their fields; a field without a value is none. */
export function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [ones, others] = [asObject(one), asObject(other)];
  return [...new Set([...Object.keys(ones), ...Object.keys(others)])].every((key) => isSame(ones[key], others[key]));
}
