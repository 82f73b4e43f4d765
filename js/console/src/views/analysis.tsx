// One dialog analysis: its result, what was asked, and another attempt if it failed.

import { ANALYSES, address } from "../addresses";
import { api } from "../api";
import { type Analysis as View, type Input, STATES, factsOf } from "../jobs/analyses";
import { filterParameters, readJobFilter, sentence } from "../jobs/filter";
import { counted } from "../knowledge/words";
import { Problem, ask } from "../problem";
import { query } from "../router";
import { Action } from "../ui/action";
import { Back } from "../ui/back";
import { formatDuration } from "../ui/format";
import { useResource } from "../ui/resource";
import { Shown, Table } from "../ui/states";
import { notify } from "../ui/toasts";
import { Text } from "../ui/value";
import { AnalysisStateLabel } from "./analyses";
import { JobFacts } from "./job-facts";

type Props = { partner: string; id: string };

function Facts({ id, of }: { id: string; of: View }) {
  const reason = of.error && (
    <>
      {sentence(of.error.message)} <code>{of.error.code}</code>
    </>
  );
  return (
    <JobFacts
      id={id}
      of={of}
      state={<AnalysisStateLabel state={of.state} />}
      reason={reason}
      more={[["Took", typeof of.server_runtime === "number" && formatDuration(of.server_runtime)]]}
    />
  );
}

/** Fields with their values. */
function Fields({ label, of, meanings = {} }: { label: string; of: Record<string, unknown>; meanings?: Record<string, string | null | undefined> }) {
  const facts = factsOf(of);
  if (facts.length === 0) return <p class="none">No fields were asked for.</p>;
  const hasMeanings = facts.some(({ name }) => meanings[name]);
  return (
    <Table label={label}>
      <thead>
        <tr>
          <th scope="col">Field</th>
          <th scope="col">Value</th>
          {hasMeanings && <th scope="col">Meaning</th>}
        </tr>
      </thead>
      <tbody>
        {facts.map(({ name, value }) => (
          <tr key={name}>
            <th scope="row" dir="auto">
              {name}
            </th>
            <td class="name" dir="auto">
              {value ?? <span class="none">not known</span>}
            </td>
            {hasMeanings && (
              <td class="name" dir="auto">
                {meanings[name] ?? ""}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Result({ of }: { of: View }) {
  if (of.state === "in-progress") return <p class="none">The result appears here.</p>;
  if (!of.output) {
    return (
      <p class="none">
        {of.retryable
          ? "There is no result. The conversation is kept, so that the analysis can be tried again."
          : "There is no result, and the conversation is not kept."}
      </p>
    );
  }
  return (
    <>
      <h3>What is known of the user</h3>
      <Fields label="Profile" of={of.output.profile} />
      <h3>Feedback</h3>
      <Fields label="Feedback" of={of.output.feedback} />
      <details>
        <summary>JSON</summary>
        <Text>{JSON.stringify(of.output, null, 2)}</Text>
      </details>
    </>
  );
}

function meaningsOf(schema: Input["profile_schema"] | Input["feedback_schema"]): Record<string, string | null | undefined> {
  return Object.fromEntries(Object.entries(schema).map(([name, { description }]) => [name, description]));
}

function Asked({ of }: { of: Input }) {
  const feedback = Object.fromEntries(Object.entries(of.feedback_schema).map(([name, { type }]) => [name, type]));
  return (
    <>
      <h3>
        Conversation in {of.language}, {counted(of.messages.length, "message")}
      </h3>
      <ol class="transcript">
        {of.messages.map(({ originator, text }, place) => (
          <li key={place} class={originator}>
            <strong>{originator === "user" ? "User" : "Character"}</strong>
            <p class="text" dir="auto">
              {text}
            </p>
          </li>
        ))}
      </ol>
      <h3>What was known of the user</h3>
      <Fields label="Known profile" of={of.current_profile} meanings={meaningsOf(of.profile_schema)} />
      <h3>Feedback that was asked for</h3>
      <Fields label="Feedback that was asked for" of={feedback} meanings={meaningsOf(of.feedback_schema)} />
      {of.prompt_extra_text && (
        <>
          <h3>What else the model was told</h3>
          <Text>{of.prompt_extra_text}</Text>
        </>
      )}
      <details>
        <summary>JSON of the input</summary>
        <Text>{JSON.stringify(of, null, 2)}</Text>
      </details>
    </>
  );
}

function InputSection({ id }: { id: string }) {
  const input = useResource(
    async (call) => {
      try {
        return await ask(api.GET("/v2/dialog_analyses/{id}/input", { ...call, params: { path: { id } } }));
      } catch (error) {
        // The analysis was completed meanwhile, or failed before inputs were kept.
        if (error instanceof Problem && error.status === 404) return null;
        throw error;
      }
    },
    [id],
  );
  return <Shown of={input}>{(found) => (found ? <Asked of={found} /> : <p class="none">The input is no longer kept.</p>)}</Shown>;
}

export function Analysis({ partner, id }: Props) {
  const analysis = useResource((call) => ask(api.GET("/v2/dialog_analyses/{id}", { ...call, params: { path: { id } } })), [id], {
    partner,
    kinds: ["analysis"],
    id,
  });
  const retry = async () => {
    await ask(api.POST("/v2/dialog_analyses/{id}/retry", { params: { path: { id } } }));
    notify("The analysis has begun again");
    await analysis.reload();
  };
  return (
    <>
      <Back to={address(ANALYSES, { partner }, filterParameters(readJobFilter(query.value, STATES)))}>All analyses</Back>
      <Shown of={analysis}>
        {(found) => (
          <>
            <Facts id={id} of={found} />
            {found.retryable && (
              <div class="actions start">
                <Action icon="refresh-cw" label="Try again" busy="Beginning…" onRun={retry} />
              </div>
            )}
            <h2>Result</h2>
            <Result of={found} />
            <h2>Input</h2>
            {found.state === "completed" ? <p class="none">The input is deleted when an analysis is completed.</p> : <InputSection id={id} />}
          </>
        )}
      </Shown>
    </>
  );
}
