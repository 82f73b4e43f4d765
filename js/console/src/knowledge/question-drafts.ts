// Questions that were typed and not searched for. A form that is shown again has them.

import type { Asked } from "./retrieval";

/** The texts of the fields of a form, by their names. */
export type Fields = Readonly<Record<string, string>>;

/** Where a question is typed: the knowledge base, the saved question that is open, and the question of the address. */
export type DraftAt = { partner: string; base: string; id: string | null; asked: unknown };

const keyOf = ({ partner, base, id }: DraftAt) => JSON.stringify([partner, base, id]);
const askedOf = ({ asked }: DraftAt) => JSON.stringify(asked);

export class QuestionDrafts {
  readonly #drafts = new Map<string, { asked: string; fields: Fields }>();

  /** Returns what was typed after the question of the address, if anything was. */
  of(at: DraftAt): Fields | null {
    const draft = this.#drafts.get(keyOf(at));
    return draft?.asked === askedOf(at) ? draft.fields : null;
  }

  set(at: DraftAt, fields: Fields): void {
    this.#drafts.set(keyOf(at), { asked: askedOf(at), fields });
  }

  end(at: DraftAt): void {
    this.#drafts.delete(keyOf(at));
  }

  clear(): void {
    this.#drafts.clear();
  }
}

/** Returns a question as the fields of its form. */
export function fieldsOfAsked({ message, before, name, weights }: Asked): Fields {
  const texts = Object.entries(weights).map(([weight, value]) => [weight, String(value)]);
  return { user_message: message, robot_message: before, character_replacement_name: name, ...Object.fromEntries(texts) };
}

/** Returns the texts of a form. */
export function fieldsOf(form: FormData): Fields {
  return Object.fromEntries([...form].filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}
