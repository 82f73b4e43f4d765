// The lines of a call, while it runs and after it.

import { Fragment } from "preact";

import { api } from "../api";
import { type Reply, timing, turns } from "../calls/transcript";
import { ask } from "../problem";
import { formatDuration } from "../ui/format";
import { useKept } from "../ui/kept";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";

type Props = { partner: string; id: string; character: string; isOver: boolean };

/** The time that a reply took, and what it rests on. */
function HowReplied({ of }: { of: Reply }) {
  const documents = of.documents ?? [];
  const time = timing(of);
  return (
    <>
      {time && <p class="hint">{time}</p>}
      {documents.length > 0 && (
        <p class="hint" dir="auto">
          Passages from {documents.join(", ")}
        </p>
      )}
    </>
  );
}

/** The lines of a call by turns. Those of a call that runs appear as they are said. */
export function CallLines({ partner, id, character, isOver }: Props) {
  const lines = useKept(useResource(
    (call) => ask(api.GET("/v2/calls/{call_id}/lines", { ...call, params: { path: { call_id: id } } })),
    [id, isOver],
    { partner, kinds: ["call_lines"], id },
  ));
  return (
    <Shown of={lines}>
      {({ data }) => {
        const found = turns(data.lines);
        return (
          <>
            {found.length === 0 ? (
              <p class="none">{data.is_open ? "Nothing was said yet." : "Nothing was said."}</p>
            ) : (
              <ol class="transcript" aria-live={data.is_open ? "polite" : undefined}>
                {found.map(({ originator, lines: said }, place) => (
                  <li key={place} class={originator === "user" ? "user" : "bot"}>
                    <strong>{originator === "user" ? "Visitor" : character}</strong> <span class="hint">{formatDuration((said[0]?.at_ms ?? 0) / 1_000)}</span>
                    {said.map(({ text, interrupted, reply }, at) => (
                      <Fragment key={at}>
                        <p class="text" dir="auto">
                          {text}
                          {interrupted && <span class="hint"> (interrupted)</span>}
                        </p>
                        {reply && <HowReplied of={reply} />}
                      </Fragment>
                    ))}
                  </li>
                ))}
              </ol>
            )}
            {data.is_open && found.length > 0 && <p class="hint">The call goes on. What is said next appears here.</p>}
          </>
        );
      }}
    </Shown>
  );
}
