// The form that changes the limits of a budget, and what they would wake.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { type Schemas, api } from "../api";
import {
  type LimitChanges, type LimitName, areKept, concernsSomething, limitChanges, limitTexts, limitsBody, revertedChanges,
} from "../knowledge/budget";
import { useDebounced } from "../knowledge/controls";
import { LIMIT_FIELDS } from "../knowledge/limit-fields";
import { counted } from "../knowledge/words";
import { Problem, ask } from "../problem";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { formatNumber, formatUsd } from "../ui/format";
import { useKept } from "../ui/kept";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { notify, notifyFailure } from "../ui/toasts";

type Budget = Schemas["BudgetView"];
type Plan = Schemas["WakeView"];

/** Returns what of a limit is used. */
function usedWords(name: LimitName, { characters, tokens, dollars }: Budget): string {
  if (name === "dollar_limit_usd") return `${formatUsd(dollars.consumed)} used`;
  return `${formatNumber((name === "character_limit" ? characters : tokens).consumed)} used`;
}

function Woken({ of, isChanged }: { of: Plan; isChanged: boolean }) {
  if (!concernsSomething(of)) return <p class="none">No document waits for this budget.</p>;
  const { documents, characters, tokens, cost_usd: cost, channels, still_blocked: blocked, complete } = of;
  const needs = [
    characters > 0 && `${counted(characters, "character")} of text`,
    tokens > 0 && `up to ${counted(tokens, "token")}`,
    Number(cost) > 0 && `up to ${formatUsd(cost)}`,
  ].filter(Boolean);
  return (
    <>
      <p>
        With {isChanged ? "these" : "the present"} limits, <strong>{documents === 0 ? "no document" : counted(documents, "document")}</strong>{" "}
        {documents > 1 ? "go" : "goes"} on at once{blocked > 0 && <>, and {formatNumber(blocked)} still {blocked === 1 ? "waits" : "wait"}</>}.
        {channels > 0 && <> {counted(channels, "channel")} would be scanned.</>}
      </p>
      {needs.length > 0 && <p class="hint">The next step of these documents takes {needs.join(", ")}. Later steps come on top.</p>}
      {!complete && <p class="hint">More than 10,000 documents wait. The oldest were considered.</p>}
    </>
  );
}

type WakeProps = { partner: string; base: string; changes: LimitChanges };

/** The documents that limits would wake, read again after each change. */
function Wake({ partner, base, changes }: WakeProps) {
  const plan = useResource<Plan>(
    (call) => ask(api.GET("/api/knowledgebases/{partner}/{kb}/limits/wake", { ...call, params: { path: { partner, kb: base }, query: changes } })),
    [partner, base, JSON.stringify(changes)],
    { partner, kinds: ["budget", "document", "folder"], base },
  );
  return <Shown of={useKept(plan)}>{(found) => <Woken of={found} isChanged={Object.keys(changes).length > 0} />}</Shown>;
}

type ChangeProps = { partner: string; base: string; budget: Budget; onChanged: () => void; onClose: () => void };

export function ChangeLimits({ partner, base, budget, onChanged, onClose }: ChangeProps) {
  const typed = useSignal(limitTexts(budget.limits));
  // Limits that are typed differ from these. An event may change those that are shown below.
  const limits = useSignal(budget.limits).value;
  const considered = useSignal<LimitChanges | null>({});
  const { soon } = useDebounced(() => (considered.value = limitChanges(typed.peek(), limits)));
  useEffect(() => soon(undefined), [typed.value]);

  const params = { path: { partner, kb: base } };
  const send = async (changes: LimitChanges) => {
    await ask(api.PATCH("/api/knowledgebases/{partner}/{kb}/limits", { params, body: limitsBody(changes) }));
    onChanged();
  };
  // The API has no condition for a change, so that of another administrator in the same moment is not noticed.
  const undo = async (changes: LimitChanges) => {
    const now = await ask(api.GET("/api/knowledgebases/{partner}/{kb}/limits", { params }));
    if (!areKept(changes, now.limits)) throw new Problem(409, "limits_changed", "Nothing was undone: the limits have been changed again since.");
    await send(revertedChanges(changes, limits));
  };
  const change = async () => {
    const changes = limitChanges(typed.peek(), limits) ?? {};
    if (Object.keys(changes).length > 0) {
      await send(changes);
      notify("The limits are changed", () => void undo(changes).catch(notifyFailure));
    }
    onClose();
  };
  return (
    <Dialog title="Change the limits" onClose={onClose}>
      <Form action="Change" busy="Changing…" onSend={change} onCancel={onClose}>
        <p class="hint">An empty field is no limit. 0 lets nothing more begin.</p>
        <div class="limit-fields">
          {LIMIT_FIELDS.map(({ name, label, pattern, inputMode, rule }) => (
            <label key={name}>
              {label}
              <input
                name={name}
                value={typed.value[name]}
                pattern={pattern}
                inputMode={inputMode}
                title={rule}
                placeholder="no limit"
                autocomplete="off"
                onInput={(event) => (typed.value = { ...typed.value, [name]: event.currentTarget.value })}
              />
              <span class="hint">{usedWords(name, budget)}</span>
            </label>
          ))}
        </div>
        <div class="panel wake" role="status">
          {considered.value === null ? (
            <p class="none">Type whole numbers of characters and tokens, and dollars with at most 8 decimals.</p>
          ) : (
            <Wake partner={partner} base={base} changes={considered.value} />
          )}
        </div>
      </Form>
    </Dialog>
  );
}
