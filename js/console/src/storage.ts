// Storage of the browser. Where it is blocked, nothing is remembered.

type Kept = { get: (key: string) => string | null; set: (key: string, value: string) => void; remove: (key: string) => void };

/** Wraps a storage so that it never throws. */
export function forgiving(open: () => Storage): Kept {
  const attempt = <T>(use: (storage: Storage) => T, otherwise: T): T => {
    try {
      return use(open());
    } catch {
      return otherwise;
    }
  };
  return {
    get: (key) => attempt((storage) => storage.getItem(key), null),
    set: (key, value) => attempt((storage) => storage.setItem(key, value), undefined),
    remove: (key) => attempt((storage) => storage.removeItem(key), undefined),
  };
}

/** Kept for this browser. */
export const kept = forgiving(() => localStorage);
/** Kept for this tab. */
export const keptInTab = forgiving(() => sessionStorage);
