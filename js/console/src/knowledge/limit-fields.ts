// Fields of forms for limits.

import { LIMIT_PATTERNS, type LimitName } from "./budget";

type LimitField = {
  name: LimitName;
  label: string;
  pattern: string;
  inputMode: "numeric" | "decimal";
  /** Words for the texts that the field takes. */
  rule: string;
};

const WHOLE = "A whole number of at most 15 digits";

export const LIMIT_FIELDS: LimitField[] = [
  { name: "character_limit", label: "Characters", pattern: LIMIT_PATTERNS.character_limit, inputMode: "numeric", rule: WHOLE },
  { name: "token_limit", label: "Tokens", pattern: LIMIT_PATTERNS.token_limit, inputMode: "numeric", rule: WHOLE },
  {
    name: "dollar_limit_usd",
    label: "US dollars",
    pattern: LIMIT_PATTERNS.dollar_limit_usd,
    inputMode: "decimal",
    rule: "Dollars with at most 8 decimals after a point",
  },
];
