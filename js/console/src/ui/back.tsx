// Links from an entry to its list.

import { Link } from "../router";
import { Icon } from "./icon";

export function Back({ to, children }: { to: string; children: string }) {
  return (
    <p>
      <Link to={to} class="back">
        <Icon name="arrow-left" />
        {children}
      </Link>
    </p>
  );
}
