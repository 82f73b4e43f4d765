// The error for a second call. The loader and the hook also use it, for calls that the wasm does not know of yet.

export const CALL_ACTIVE = ["CALL_ACTIVE", "A call is active. Call hangUp() before starting another."];
