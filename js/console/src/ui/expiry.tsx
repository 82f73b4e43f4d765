// The end of keys, in lists and in forms.

import { useSignal } from "@preact/signals";

import { Time } from "./time";

/** The end of a key: when it was revoked, or when it expires. */
export function Expiry({ of }: { of: { revoked_at?: string | null; expires_at?: string | null } }) {
  if (!of.revoked_at) return <Time at={of.expires_at} />;
  return (
    <>
      revoked <Time at={of.revoked_at} />
    </>
  );
}

/** Days that a key may last at most. */
const MAX_DAYS = 3_650;

type Ends = "same" | "never" | "days";

/** A choice of when a key ends. `present` is when it ends now; without it, the key is a new one. */
export function ExpiryField({ present }: { present?: string | null }) {
  const isNew = present === undefined;
  const ends = useSignal<Ends>(isNew ? "never" : "same");
  return (
    <div class="limit-fields">
      <label>
        Expires
        <select name="expiry" value={ends.value} onChange={(event) => (ends.value = event.currentTarget.value as Ends)}>
          {!isNew && <option value="same">as before</option>}
          <option value="never">never</option>
          <option value="days">after some days</option>
        </select>
        {!isNew && (
          <span class="hint">
            Before: <Time at={present} />
          </span>
        )}
      </label>
      {ends.value === "days" && (
        <label>
          Days from now
          <input name="expires_in_days" type="number" min={1} max={MAX_DAYS} step={1} required defaultValue="90" />
        </label>
      )}
    </div>
  );
}

/** Returns what {@link ExpiryField} set; nothing if it stays as it was. */
export function readExpiry(fields: FormData): { expires_in_days?: number | null } {
  const ends = fields.get("expiry");
  if (ends === "days") return { expires_in_days: Number(fields.get("expires_in_days")) };
  return ends === "never" ? { expires_in_days: null } : {};
}
