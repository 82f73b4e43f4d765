// Messages to the other tabs of the browser.

import type { Channel } from "./events/feed";

/** Joins a channel; null where the browser has none. A tab does not receive its own messages. */
export function joinTabs(name: string, receive: (message: unknown) => void): Channel | null {
  try {
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => receive(data);
    return {
      post: (message) => {
        try {
          channel.postMessage(message);
        } catch {
          // Closed meanwhile.
        }
      },
      close: () => channel.close(),
    };
  } catch {
    return null;
  }
}
