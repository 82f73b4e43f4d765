// Parts that the views of jobs, such as transcripts, share.

import type { ComponentChildren } from "preact";

import { type JobFilter, isFiltered } from "../jobs/filter";
import { Facts, type NamedValue } from "../ui/facts";
import { Empty } from "../ui/states";
import { Time } from "../ui/time";

type JobFactsProps = {
  id: string;
  of: { created_at?: string | null; ended_at?: string | null };
  state: ComponentChildren;
  /** Why the job failed. */
  reason: ComponentChildren;
  more: readonly NamedValue[];
};

/** The state of a job, why it failed, its times, and other facts. */
export function JobFacts({ id, of, state, reason, more }: JobFactsProps) {
  const facts: NamedValue[] = [
    ["State", state],
    ["Reason", reason],
    ["Created", <Time at={of.created_at} />],
    ["Ended", of.ended_at && <Time at={of.ended_at} />],
    ...more,
    ["Id", <code>{id}</code>],
  ];
  return <Facts of={facts} />;
}

type NoJobsProps = { filter: JobFilter<string>; noun: string; plural: string; children: ComponentChildren };

/** An empty list of jobs: none match, or else there are none, which the children say. */
export function NoJobs({ filter, noun, plural, children }: NoJobsProps) {
  if (!isFiltered(filter)) return <>{children}</>;
  return (
    <Empty icon="search" title={`No ${noun} matches`}>
      <p>Change the filters above, or show all {plural}.</p>
    </Empty>
  );
}
