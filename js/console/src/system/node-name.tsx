// Names of nodes and their processes.

/** Characters that tell ids apart that were made in different milliseconds. */
const SHOWN = 13;

/** The beginning of the id of a node or a process, and all of it on hover. */
export function NodeName({ children: id }: { children: string }) {
  return <code title={id}>{id.slice(0, SHOWN)}</code>;
}
