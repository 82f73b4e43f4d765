// What a second call is refused with: the loader and the hook each know of calls that the wasm does not.

export const CALL_ACTIVE = ["CALL_ACTIVE", "A call is active. Call hangUp() before starting another."];
