import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const { Problem, Sessions } = await load("session.ts", "problem.ts");
const [acme, globex] = [
  { key_id: "a", partner: "acme", isAdmin: false },
  { key_id: "g", partner: "globex", isAdmin: false },
];
const fail = (status) => {
  throw new Problem(status, "x", `status ${status}`);
};

/** A browser with a server: `cookie` is who is signed in. */
function world({ isHttps = true, keepsCookies = true } = {}) {
  const browser = { cookie: null, tabs: [], calls: [] };
  browser.open = () => {
    const tab = { resets: 0 };
    tab.sessions = new Sessions({
      signIn: async ({ api_key: user }) => {
        if (!user) fail(401);
        if (keepsCookies) browser.cookie = user;
        return user;
      },
      read: async () => (browser.failure ? fail(browser.failure) : (browser.cookie ?? fail(401))),
      signOut: async (isEverywhere) => {
        browser.calls.push(isEverywhere);
        if (browser.failure) fail(browser.failure);
        browser.cookie = null;
      },
      notifyTabs: (message) => {
        for (const other of browser.tabs) if (other !== tab) other.received = other.sessions.receive(message);
      },
      reset: () => (tab.resets += 1),
      isHttps: () => isHttps,
    });
    browser.tabs.push(tab);
    return tab;
  };
  return browser;
}
const now = ({ sessions }) => ({ current: sessions.current.peek(), isEnded: sessions.isEnded.peek() });

test("nobody is signed in at first, and a server that fails is no answer", async () => {
  const browser = world();
  const { sessions } = browser.open();
  browser.failure = 503;
  await assert.rejects(sessions.read(), /status 503/);
  assert.equal(sessions.current.peek(), undefined);
  for (const status of [401, 404]) {
    browser.failure = status;
    await sessions.read();
    assert.equal(sessions.current.peek(), null);
  }
});

test("a session that ends keeps the page until somebody signs in again", async () => {
  const browser = world();
  const tab = browser.open();
  await tab.sessions.signIn({ api_key: acme });
  const before = tab.sessions.signInCount.peek();
  browser.cookie = null;
  tab.sessions.unauthorized(before);
  assert.deepEqual(now(tab), { current: acme, isEnded: true });
  await assert.rejects(tab.sessions.signIn({ api_key: null }), { status: 401 });
  assert.deepEqual(now(tab), { current: acme, isEnded: true });
  await tab.sessions.signIn({ api_key: acme });
  assert.deepEqual(now(tab), { current: acme, isEnded: false });
  assert.equal(tab.resets, 0);
  // The answer of a request from before comes now.
  tab.sessions.unauthorized(before);
  assert.equal(tab.sessions.isEnded.peek(), false);
  tab.sessions.unauthorized(tab.sessions.signInCount.peek());
  assert.equal(tab.sessions.isEnded.peek(), true);
});

test("another user starts with a new page, in all tabs", async () => {
  const browser = world();
  const [first, second] = [browser.open(), browser.open()];
  await first.sessions.signIn({ api_key: acme });
  await second.received;
  assert.deepEqual(now(second), { current: acme, isEnded: false });
  await second.sessions.signIn({ api_key: globex });
  await first.received;
  for (const tab of [first, second]) {
    assert.equal(tab.resets, 1);
    assert.deepEqual(now(tab), { current: undefined, isEnded: false });
  }
});

test("signing out ends all tabs, and another user after that starts with a new page, too", async () => {
  const browser = world();
  const [first, second] = [browser.open(), browser.open()];
  await first.sessions.signIn({ api_key: acme });
  await second.received;
  await first.sessions.signOut(true);
  for (const tab of [first, second]) assert.deepEqual(now(tab), { current: null, isEnded: false });
  assert.deepEqual(browser.calls, [true]);
  first.sessions.unauthorized(first.sessions.signInCount.peek());
  assert.equal(first.sessions.isEnded.peek(), false);
  await second.sessions.signIn({ api_key: globex });
  assert.equal(second.resets, 1);
});

test("a tab whose session has ended goes on when another tab signs in", async () => {
  const browser = world();
  const [first, second] = [browser.open(), browser.open()];
  await first.sessions.signIn({ api_key: acme });
  await second.received;
  second.sessions.unauthorized(second.sessions.signInCount.peek());
  assert.equal(second.sessions.isEnded.peek(), true);
  await first.sessions.signIn({ api_key: acme });
  await second.received;
  assert.deepEqual(now(second), { current: acme, isEnded: false });
});

test("an answer from before the sign-out signs nobody in", async () => {
  const browser = world();
  const tab = browser.open();
  await tab.sessions.signIn({ api_key: acme });
  const read = tab.sessions.read();
  await Promise.all([read, tab.sessions.receive("signed-out")]);
  assert.equal(tab.sessions.current.peek(), null);
});

test("a browser that keeps no cookie is told of", async () => {
  for (const [isHttps, message] of [[true, /Allow cookies for this site, then/], [false, /open this page with https/]]) {
    const tab = world({ isHttps, keepsCookies: false }).open();
    await assert.rejects(tab.sessions.signIn({ api_key: acme }), (problem) => problem.code === "cookie_not_kept" && message.test(problem.message));
    assert.equal(tab.sessions.current.peek(), undefined);
  }
  // The cookie of an older session is still there.
  const browser = world({ keepsCookies: false });
  browser.cookie = globex;
  await assert.rejects(browser.open().sessions.signIn({ api_key: acme }), { code: "cookie_not_kept" });
});

test("a sign-in holds if the server cannot say so for a moment, and a sign-out that fails is none", async () => {
  const browser = world();
  const tab = browser.open();
  browser.failure = 503;
  await tab.sessions.signIn({ api_key: acme });
  assert.deepEqual(now(tab), { current: acme, isEnded: false });
  await assert.rejects(tab.sessions.signOut(false), { status: 503 });
  assert.deepEqual(now(tab), { current: acme, isEnded: false });
});
