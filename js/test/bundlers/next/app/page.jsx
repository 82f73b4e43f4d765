"use client";

import * as sdk from "@colloquy/sdk";
import { useCall } from "@colloquy/sdk/react";
import { useEffect } from "react";

export default function Page() {
  const { status } = useCall();
  useEffect(() => {
    // The backend that is in the page cannot be imported on the server; the SDK can.
    import("../../../call.mjs").then(({ placeCall }) => placeCall(sdk));
  }, []);
  return <p>status: {status}</p>;
}
