// The channel that a folder follows.

import { type Schemas, api } from "../api";
import { duplicateCount } from "../documents/words";
import { ask } from "../problem";
import { Action } from "../ui/action";
import { formatNumber, formatUsd } from "../ui/format";
import { Time } from "../ui/time";
import { notify, notifyFailure } from "../ui/toasts";
import { TierOptions } from "./base-folder-dialogs";

type Channel = Schemas["FolderDetailsView"];
type Status = Channel["status"];
type Change = { enabled?: boolean; model_tier?: Channel["model_tier"] };

const STATUSES: Record<Status, { text: string; mark: string }> = {
  pending: { text: "waits to be scanned", mark: "" },
  syncing: { text: "being scanned", mark: "" },
  synced: { text: "up to date", mark: "up" },
  incomplete: { text: "scanned in part", mark: "" },
  budget_blocked: { text: "blocked by the budget", mark: "down" },
  paused: { text: "paused", mark: "plain" },
  error: { text: "failed", mark: "down" },
  duplicate: { text: "duplicate", mark: "" },
};

const VIDEO_STATES: { state: keyof Channel["counts"]; text: string; meaning: string }[] = [
  { state: "imported", text: "imported", meaning: "Documents were made of them." },
  { state: "pending", text: "waiting", meaning: "Documents are to be made of them." },
  { state: "deferred", text: "deferred", meaning: "They are live, or have not begun." },
  { state: "duplicate", text: "duplicate", meaning: "The knowledge base has documents of them already." },
  { state: "suppressed", text: "suppressed", meaning: "Their documents were deleted, so they are not imported again." },
];

function Counts({ of }: { of: Channel["counts"] }) {
  return (
    <dl class="figures">
      {VIDEO_STATES.map(({ state, text, meaning }) => (
        <div key={state}>
          <dt>{text}</dt>
          <dd title={meaning}>{formatNumber(of[state])}</dd>
        </div>
      ))}
    </dl>
  );
}

function Details({ of, discoveryCost }: { of: Channel; discoveryCost: string | null | undefined }) {
  const duplicates = of.duplicate_document_ids.length;
  return (
    <dl>
      <dt>Channel</dt>
      <dd>
        <bdi>{of.channel_url}</bdi>
        {of.channel_id && (
          <>
            {" "}
            <code>{of.channel_id}</code>
          </>
        )}
      </dd>
      <dt>Complete scan</dt>
      <dd>
        <Time at={of.last_sync_at} />
        {of.next_sync_at && of.enabled && (
          <>
            , next <Time at={of.next_sync_at} />
          </>
        )}
      </dd>
      {discoveryCost && (
        <>
          <dt>Cost of scans</dt>
          <dd>{formatUsd(discoveryCost)}</dd>
        </>
      )}
      {duplicates > 0 && (
        <>
          <dt>Duplicates</dt>
          <dd>
            Other folders have {duplicateCount(duplicates)} of its videos.
          </dd>
        </>
      )}
    </dl>
  );
}

type PanelProps = { partner: string; base: string; of: Schemas["ListedFolderView"]; channel: Channel; onChanged: () => void };

export function ChannelPanel({ partner, base, of: folder, channel, onChanged }: PanelProps) {
  const params = { path: { partner, kb: base, folder: folder.name } };
  const change = async (body: Change) => {
    await ask(api.PATCH("/api/folders/{partner}/{kb}/{folder}/channel", { params, body }));
    onChanged();
  };
  const revert = (body: Change) => () => void change(body).catch(notifyFailure);
  const setEnabled = async (enabled: boolean) => {
    await change({ enabled });
    notify(enabled ? "The channel is followed again" : "The channel is paused", revert({ enabled: !enabled }));
  };
  const setTier = async (model_tier: Channel["model_tier"]) => {
    await change({ model_tier });
    notify("Other models work on future videos", revert({ model_tier: channel.model_tier }));
  };
  const scan = async () => {
    const { status } = await ask(api.POST("/api/folders/{partner}/{kb}/{folder}/sync", { params }));
    notify(status === "budget_blocked" ? "The scan waits for the budget" : "The channel is scanned soon");
    onChanged();
  };
  const { text, mark } = STATUSES[channel.status];
  return (
    <section class="panel" aria-label="Channel">
      <div class="toolbar">
        <span>
          <span class={`state ${mark}`}>{text}</span>{" "}
          {channel.last_error ?? (channel.duplicate_source ? "Another folder of this knowledge base follows the same channel." : "")}
        </span>
        <div class="actions">
          {channel.enabled ? (
            <>
              <Action icon="refresh-cw" label="Scan now" busy="Requesting…" onRun={scan} />
              <Action icon="pause" label="Pause" busy="Pausing…" onRun={() => setEnabled(false)} />
            </>
          ) : (
            <Action icon="play" label="Resume" busy="Resuming…" onRun={() => setEnabled(true)} />
          )}
        </div>
      </div>
      <Counts of={channel.counts} />
      <Details of={channel} discoveryCost={folder.discovery_cost_usd} />
      <label class="inline">
        Models for future videos
        <select
          value={channel.model_tier}
          onChange={(event) => void setTier(event.currentTarget.value as Channel["model_tier"]).catch(notifyFailure)}
        >
          <TierOptions />
        </select>
      </label>
    </section>
  );
}
