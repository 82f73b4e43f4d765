// One quota: its limits, what it allows, and its usage.

import { useSignal } from "@preact/signals";

import { QUOTAS, address } from "../addresses";
import { api } from "../api";
import { nameOf } from "../calls/names";
import { LimitCard } from "../knowledge/limit-card";
import { ask } from "../problem";
import { KIND_NAMES, LIMITED, type Limited, type Quota as QuotaView, RESETS, standingOf } from "../quotas/quota";
import { MEASURE_NAMES, formatAmount } from "../usage/measures";
import { Back } from "../ui/back";
import { useHeading } from "../ui/heading";
import { Icon } from "../ui/icon";
import { Reload } from "../ui/reload";
import { useResource } from "../ui/resource";
import { Shown } from "../ui/states";
import { Time } from "../ui/time";
import { EditQuota, RevokeQuota, RotateQuota } from "./quota-form";
import { QuotaStateLabel } from "./quotas";
import { UsageReport } from "./usage-report";

type Props = { partner: string; id: string };
type Open = "edit" | "rotate" | "revoke";

const DIALOGS = { edit: EditQuota, rotate: RotateQuota, revoke: RevokeQuota };

function List({ of, otherwise }: { of: readonly string[] | null | undefined; otherwise: string }) {
  return of ? <span dir="auto">{of.join(", ")}</span> : <span class="none">{otherwise}</span>;
}

function Facts({ of }: { of: QuotaView }) {
  return (
    <dl>
      <dt>State</dt>
      <dd>
        <QuotaStateLabel of={of} /> {of.revoked_at && <Time at={of.revoked_at} />}
      </dd>
      <dt>For</dt>
      <dd>{of.kinds.map((kind) => KIND_NAMES[kind]).join(", ")}</dd>
      <dt>Models</dt>
      <dd>
        <List of={of.allowed_models} otherwise="all" />
      </dd>
      <dt>Characters</dt>
      <dd>
        <List of={of.allowed_characters} otherwise="all of the partner, and those that a request brings along" />
      </dd>
      <dt>Expires</dt>
      <dd>
        <Time at={of.expires_at} />
      </dd>
      <dt>Last used</dt>
      <dd>
        <Time at={of.last_used_at} />
      </dd>
      <dt>Created</dt>
      <dd>
        <Time at={of.created_at} />
      </dd>
      <dt>Id</dt>
      <dd>
        <code>{of.id}</code>
      </dd>
    </dl>
  );
}

function Limits({ of }: { of: QuotaView }) {
  const format = (measure: Limited) => (amount: number | string) => formatAmount(measure, amount);
  return (
    <section aria-labelledby="limits">
      <h2 id="limits">Limits</h2>
      <p class="hint">
        {RESETS[of.period]}{" "}
        {of.period_end && (
          <>
            What was used is forgotten <Time at={of.period_end} />, at midnight UTC.
          </>
        )}
      </p>
      <div class="budget-cards">
        {LIMITED.map((measure) => (
          <LimitCard key={measure} title={MEASURE_NAMES[measure]} of={standingOf(of, measure)} format={format(measure)} />
        ))}
      </div>
    </section>
  );
}

export function Quota({ partner, id }: Props) {
  const quota = useResource((call) => ask(api.GET("/api/quotas/{partner}/{quota_id}", { ...call, params: { path: { partner, quota_id: id } } })), [partner, id]);
  const open = useSignal<Open | null>(null);
  /** Counts how often the usage was to be read again. */
  const version = useSignal(0);
  const reload = () => {
    version.value += 1;
    return quota.reload();
  };
  const found = quota.data.value;
  useHeading(found && `Quota ${nameOf(found)}`);
  const Opened = open.value && DIALOGS[open.value];
  return (
    <>
      <Back to={address(QUOTAS, { partner })}>All quotas</Back>
      <Shown of={quota}>
        {(of) => (
          <>
            <div class="actions">
              <Reload of={{ isLoading: quota.isLoading, reload }} />
              {!of.revoked_at && (
                <>
                  <button type="button" onClick={() => (open.value = "edit")}>
                    <Icon name="pencil" /> Edit…
                  </button>
                  <button type="button" onClick={() => (open.value = "rotate")}>
                    <Icon name="key-round" /> Replace the key…
                  </button>
                  <button type="button" onClick={() => (open.value = "revoke")}>
                    <Icon name="trash-2" /> Revoke…
                  </button>
                </>
              )}
            </div>
            <Facts of={of} />
            <Limits of={of} />
          </>
        )}
      </Shown>
      {found && (
        <section aria-labelledby="usage">
          <h2 id="usage">Usage</h2>
          <UsageReport whose={{ partner, quota: id }} version={version.value}>
            <p>Give the key of this quota to an application, or choose other days.</p>
          </UsageReport>
        </section>
      )}
      {Opened && found && <Opened partner={partner} of={found} onChanged={() => void quota.reload()} onClose={() => (open.value = null)} />}
    </>
  );
}
