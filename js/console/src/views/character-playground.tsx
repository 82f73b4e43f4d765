// The playground of a version that is saved.

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";

import { useCheck } from "../characters/check";
import { draftOf } from "../characters/draft";
import type { CharacterView } from "../characters/save";
import { formatNumber } from "../ui/format";
import { Icon } from "../ui/icon";
import { Preview } from "./character-preview";
import { Playground } from "./playground";

type SavedProps = { partner: string; of: CharacterView; isNewest: boolean };

export function SavedPlayground({ partner, of, isNewest }: SavedProps) {
  const draft = useMemo(() => draftOf(of.name, of), [of]);
  const values = useSignal<Record<string, string>>({});
  const checking = useCheck(partner, { draft, values: values.value });
  const result = checking.result.value;
  const needsValues = result?.unfilled || Object.keys(values.value).length > 0;
  const began = useRef(of.version).current;
  return (
    <>
      {of.version !== began && (
        <p class="notice" role="status">
          <Icon name="triangle-alert" />
          <span>
            Version {formatNumber(of.version)} was saved after the conversation began with version {formatNumber(began)}. New replies come from version{" "}
            {formatNumber(of.version)}.
          </span>
        </p>
      )}
      {needsValues && <Preview checking={checking} isEdited={false} extra={[]} values={values.value} onValues={(changed) => (values.value = changed)} />}
      <Playground
        partner={partner}
        name={of.parameters.name ?? of.parameters.robot_name ?? of.name}
        content={of}
        reference={isNewest ? of.reference : null}
        values={values.value}
        greeting={result?.rendered?.greetings[0] ?? ""}
      />
    </>
  );
}
