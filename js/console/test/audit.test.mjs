import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";

const { NO_FILTER, auditQuery, isFiltered, readFilter } = await load("audit/filter.ts");
const words = await load("audit/words.ts");

const CHANGE = {
  action: "rename", method: "PUT", path: "/api/documents/{partner}/{kb}/{doc_id}/name", resource: "document", partner: "acme",
  subject: "0b54a6a0-66ff-4b8c-a8a4-6f0d3c1f2e9d", parameters: { kb: "my docs", doc_id: "0b54a6a0-66ff-4b8c-a8a4-6f0d3c1f2e9d" }, status: 200,
};

test("the address holds the filter, and what means nothing is left out", () => {
  const read = (text) => readFilter(new URLSearchParams(text));
  assert.deepEqual(read("action=constructor&from=2026-02-30&key=%20"), NO_FILTER);
  assert.equal(isFiltered(read("")), false);
  const filter = read("action=revoke_key&key=k&subject=s&from=2026-02-01&to=2026-02-01");
  assert.equal(isFiltered(filter), true);
  const { from, until, ...rest } = auditQuery(filter);
  assert.deepEqual(rest, { action: "revoke_key", key: "k", subject: "s" });
  assert.equal(Date.parse(until) - Date.parse(from), 86_400_000);
});

test("a change is told in words, or by its method and path", () => {
  assert.equal(words.actionWords(CHANGE), "Renamed the document");
  assert.equal(words.actionWords({ ...CHANGE, action: "toString" }), "PUT /api/documents/{partner}/{kb}/{doc_id}/name");
  assert.equal(words.shortSubject(CHANGE.subject), "3c1f2e9d");
  assert.equal(words.shortSubject("ada"), "ada");
});

test("a change leads to its resource, unless that was deleted or has no view", () => {
  assert.deepEqual(words.homeOf(CHANGE), { scope: "knowledge", to: `/p/acme/knowledge/my%20docs/documents/${CHANGE.subject}` });
  assert.equal(words.homeOf({ ...CHANGE, action: "delete_document", method: "DELETE" }), null);
  assert.equal(words.homeOf({ ...CHANGE, resource: "session", subject: null }), null);
  assert.equal(words.homeOf({ ...CHANGE, partner: null }), null);
});

test("the outcome follows from the status", () => {
  assert.deepEqual([201, 500, null].map((status) => words.outcomeOf({ status })), ["done", "failed", "unknown"]);
  const author = (change) => words.authorOf({ is_admin: false, key_name: null, key_id: null, ...change });
  assert.equal(author({ key_name: "build", key_id: "0b54a6a0" }), "build");
  assert.equal(author({ key_id: CHANGE.subject }), "3c1f2e9d");
  assert.equal(author({ is_admin: true }), "an administrator");
});
