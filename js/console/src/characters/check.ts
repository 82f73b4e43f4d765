// Checks of a draft, as saving would check it.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { FOREGROUND, type Schemas, api } from "../api";
import { systemClock } from "../clock";
import { type Problem, ask, toProblem } from "../problem";
import { Checker } from "./checker";
import { type Draft, contentOf } from "./draft";
import { given } from "./problems";

export type Check = Schemas["CharacterCheck"];

/** A draft to be checked, and the values of its placeholders. */
export type Checked = { draft: Draft; values: Record<string, string> };

export type Checking = {
  /** The result for what was checked last; undefined before the first. */
  result: Signal<Check | undefined>;
  /** Why the newest could not be checked. */
  failure: Signal<Problem | undefined>;
  /** False while what is shown is older than what was typed. */
  isCurrent: Signal<boolean>;
  again: () => void;
};

/** Checks a draft while it is typed. */
export function useCheck(partner: string, checked: Checked): Checking {
  const result = useSignal<Check | undefined>(undefined);
  const failure = useSignal<Problem | undefined>(undefined);
  const isCurrent = useSignal(false);
  const checker = useRef<Checker<Checked, Check> | null>(null);
  useEffect(() => {
    const own = new Checker<Checked, Check>({
      clock: systemClock,
      check: ({ draft, values }, signal) => {
        const { personality, parameters } = contentOf(draft);
        const named = draft.name === "" ? {} : { name: draft.name };
        const body = { ...named, personality, parameters, character_params: given(values) };
        return ask(api.POST("/api/character_drafts/{partner}/check", { headers: FOREGROUND, signal, params: { path: { partner } }, body }));
      },
      onResult: (found) => {
        [result.value, failure.value, isCurrent.value] = [found, undefined, true];
      },
      onFailure: (error) => {
        failure.value = toProblem(error);
      },
    });
    checker.current = own;
    own.check(checked, { atOnce: true });
    return () => own.stop();
  }, [partner]);
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    isCurrent.value = false;
    checker.current?.check(checked);
  }, [checked.draft, checked.values]);
  return { result, failure, isCurrent, again: () => checker.current?.check(checked, { atOnce: true }) };
}
