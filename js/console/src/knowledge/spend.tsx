// Spend, as the API writes it.

import { Explained } from "../ui/explained";

/** A spend, with its explanation on hover and on focus. */
export function Spend({ spend }: { spend: { display: string; explanation: string } }) {
  return <Explained as={spend.explanation}>{spend.display}</Explained>;
}
