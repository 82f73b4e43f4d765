// Facts that the visitor of a call told of themselves.

import { api } from "../api";
import { ask } from "../problem";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Values } from "../ui/value";

export function CallVisitor({ partner, id }: { partner: string; id: string }) {
  const visitor = useResource(
    (call) => ask(api.GET("/v2/calls/{call_id}/visitor", { ...call, params: { path: { call_id: id } } })),
    [id],
    { partner, kinds: ["call"], id },
  );
  return (
    <Shown of={visitor}>
      {({ data: { facts } }) =>
        Object.keys(facts).length > 0 ? (
          <Values of={facts} />
        ) : (
          <p class="none">Nothing. A call looks for the fields that its character names, if its page listens for them (onUserInfo).</p>
        )
      }
    </Shown>
  );
}
