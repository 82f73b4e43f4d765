// Usage of a partner, summed over its quotas.

import { QUOTAS, address } from "../addresses";
import { Link } from "../router";
import { UsageReport } from "./usage-report";

export function Usage({ partner }: { partner: string }) {
  return (
    <UsageReport whose={{ partner }}>
      <p>
        What is used with the keys of <Link to={address(QUOTAS, { partner })}>quotas</Link> and in playgrounds counts here. Choose other days, or create a quota.
      </p>
    </UsageReport>
  );
}
