import assert from "node:assert/strict";
import { test } from "node:test";

import { load } from "./bundle.mjs";
import { FakeClock, settle } from "./fakes.mjs";

const draft = await load("characters/draft.ts");

test("a draft keeps what the console does not know, and writes back what it read", () => {
  const { contentOf, draftOf, isSame } = draft;
  const parameters = {
    robot_name: "Ada",
    rag_enabled: true,
    shop: { city: "Delft", hours: [9, 17] },
    easy_questions: ["Where?"],
    profile_schema: { pet: { type: "string", description: "A pet", one_of: ["cat"] }, name: { type: "string" } },
    voice: { id: "f3", speed: 1.2, language: "de" },
  };
  const read = draftOf("guide", { personality: "You are {{ robot_name }}.", parameters });
  assert.deepEqual(contentOf(read), { personality: "You are {{ robot_name }}.", parameters });
  const cleared = draft.withParameter(read, "robot_name", undefined);
  assert.equal("robot_name" in contentOf(cleared).parameters, false);
  assert.ok(isSame(draft.withParameter(cleared, "robot_name", "Ada"), read), "the order of fields means nothing");
  assert.ok(!isSame(cleared, read));
});

test("facts are left to the server, none, or those that are typed, also while two have one name", () => {
  const { contentOf, draftOf, repeatedFacts } = draft;
  const of = (profile_schema) => draftOf("guide", { personality: "", parameters: { profile_schema } });
  assert.equal(of(undefined).facts, null);
  assert.equal("profile_schema" in contentOf(of(undefined)).parameters, false);
  assert.deepEqual(contentOf(of({})).parameters, { profile_schema: {} });
  const typed = { ...of({ pet: { type: "string" } }) };
  typed.facts = [...typed.facts, { name: "pet", description: "again", others: {} }];
  assert.deepEqual(repeatedFacts(typed), ["pet"]);
  assert.deepEqual(repeatedFacts(of({ pet: { type: "string" } })), []);
});

test("fields that were typed come back when the choice of facts comes back", () => {
  const { draftOf, factsChoice, withFactsChoice } = draft;
  const own = draftOf("guide", { personality: "", parameters: { profile_schema: { pet: { type: "string", one_of: ["cat"] } } } });
  assert.equal(factsChoice(own), "own");
  for (const other of ["server", "none"]) {
    const changed = withFactsChoice(own, other, own.facts);
    assert.equal(factsChoice(changed), other);
    assert.deepEqual(withFactsChoice(changed, "own", own.facts), own);
  }
  assert.deepEqual(withFactsChoice(draft.EMPTY, "own", []).facts, [{ name: "", description: "", others: {} }]);
});

test("a voice is written as its id where that says all, and keeps its other fields", () => {
  const { voiceOf, withVoice, withParameter, EMPTY } = draft;
  const of = (voice) => withParameter(EMPTY, "voice", voice);
  const cases = [
    [undefined, { id: "f3", speed: null }, "f3"],
    ["f2", { id: "f3", speed: 1.2 }, { id: "f3", speed: 1.2 }],
    [{ id: "f2", speed: 1.2 }, { id: "f2", speed: null }, "f2"],
    [{ voice: "f2", language: "de" }, { id: "f3", speed: null }, { id: "f3", language: "de" }],
    ["f2", { id: "", speed: null }, undefined],
    [{ id: "f2", language: "de" }, { id: "", speed: null }, { language: "de" }],
    [null, { id: "", speed: 0.8 }, { speed: 0.8 }],
  ];
  for (const [before, voice, expected] of cases) {
    const written = withVoice(of(before), voice);
    assert.deepEqual(written.parameters.voice, expected);
    assert.deepEqual(voiceOf(written), voice);
  }
});

test("a draft is checked after a pause, one check at a time, and only the newest", async () => {
  const { Checker, PAUSE_MS } = await load("characters/checker.ts");
  const clock = new FakeClock();
  const [asked, results, failures] = [[], [], []];
  let running = 0;
  const checker = new Checker({
    clock,
    check: (text, signal) => {
      running += 1;
      assert.equal(running, 1, "one at a time");
      return new Promise((resolve, reject) => {
        const end = (act) => (value) => {
          running -= 1;
          act(value);
        };
        asked.push({ text, signal, answer: end(resolve), fail: end(reject) });
        signal.addEventListener("abort", () => end(reject)(new Error("aborted")));
      });
    },
    onResult: (result, of) => results.push([result, of]),
    onFailure: (error) => failures.push(error.message),
  });
  checker.check("a", { atOnce: true });
  await settle();
  assert.deepEqual(asked.map(({ text }) => text), ["a"], "the first is checked at once");
  checker.check("ab");
  assert.ok(asked[0].signal.aborted, "what is out of date is cancelled");
  await clock.advance(PAUSE_MS - 1);
  checker.check("abc");
  await clock.advance(PAUSE_MS - 1);
  assert.equal(asked.length, 1, "whoever types goes on typing");
  await clock.advance(1);
  assert.deepEqual(asked.map(({ text }) => text), ["a", "abc"]);
  asked[1].answer("fine");
  await settle();
  assert.deepEqual(results, [["fine", "abc"]]);
  checker.check("abcd");
  await clock.advance(PAUSE_MS);
  asked[2].fail(new Error("busy"));
  await settle();
  assert.deepEqual(failures, ["busy"]);
  checker.check("abcde");
  await clock.advance(PAUSE_MS);
  checker.stop();
  checker.check("abcdef");
  await clock.advance(10 * PAUSE_MS);
  assert.ok(asked[3].signal.aborted);
  assert.equal(asked.length, 4);
  assert.deepEqual([results.length, failures.length], [1, 1]);
});

test("problems stand at their field, with the place in a template", async () => {
  const { problemWords, problemsOf } = await load("characters/problems.ts");
  const problems = [
    { field: "parameters.documents[1].title", message: "too long" },
    { field: "parameters.documents", message: "too many" },
    { field: "personality", message: "unknown filter", line: 3, column: 7 },
    { field: "personality", message: "unknown", line: 3 },
  ];
  assert.deepEqual(problemsOf(problems, "parameters.documents"), [problems[1]]);
  assert.deepEqual(problemsOf(problems, "parameters.documents", true), [problems[0], problems[1]]);
  assert.deepEqual(problemsOf(problems, "parameters.document", true), []);
  assert.deepEqual(problemsOf(problems, "personality").map(problemWords), ["Line 3, column 7: unknown filter", "Line 3: unknown"]);
});

test("a problem leads to its field, and in a template to its place", async () => {
  const { controlsOf, offsetOf } = await load("characters/problems.ts");
  for (const [field, ...controls] of [
    ["personality", "personality"],
    ["name", "id"],
    ["parameters.name", "name"],
    ["parameters.greetings[2]", "greeting-2"],
    ["parameters.greetings", "greeting-0"],
    ["parameters.documents", "title-0"],
    ["parameters.documents[1].title", "title-1"],
    ["parameters.documents[1].text", "text-1"],
    ["parameters.voice.speed", "speed"],
    ["parameters.voice.language", "voice"],
    ["parameters.profile_schema.pet.type", "facts"],
    ["parameters.rag_index_required", "rag_index_required"],
    ["parameters.patience_message", "patience_message", "patience"],
    ["parameters.shop.city"],
    ["parameters.shop"],
  ]) assert.deepEqual(controlsOf(field), controls, field);
  const text = "One\n😀 {{ a }}\n";
  assert.equal(text.slice(offsetOf(text, 2, 3)), "{{ a }}\n");
  assert.equal(offsetOf(text, 1, 1), 0);
  assert.equal(offsetOf(text, 9, 9), text.length);
});

test("versions are compared part by part, whatever the order of their fields", async () => {
  const { changedParts } = await load("characters/parts.ts");
  const one = { personality: "A", parameters: { robot_name: "Ada", shop: { a: 1, b: 2 }, documents: [{ title: "Hours", text: "Nine" }, { title: "Hours", text: "Ten" }] } };
  const same = { personality: "A", parameters: { documents: one.parameters.documents, shop: { b: 2, a: 1 }, robot_name: "Ada" } };
  assert.deepEqual(changedParts(one, same), []);
  const other = { personality: "B", parameters: { ...one.parameters, documents: [{ title: "Hours", text: "Nine" }, { title: "Prices", text: "Free" }] } };
  assert.deepEqual(
    changedParts(one, other).map(({ title, before, after }) => [title, before, after]),
    [["Personality", "A", "B"], ["Document “Hours” (2)", "Ten", ""], ["Document “Prices”", "", "Free"]],
  );
  const [settings] = changedParts(one, { ...one, parameters: { ...one.parameters, robot_name: "Eva" } });
  assert.equal(settings.title, "Settings");
  assert.equal(settings.after, '  "robot_name": "Eva"\n  "shop": {\n    "a": 1\n    "b": 2\n  }');
  const [added] = changedParts({ personality: "", parameters: {} }, { personality: "", parameters: { robot_name: "Ada" } });
  assert.deepEqual([added.before, added.after], ["", '  "robot_name": "Ada"']);
});

test("voices are named without saying anything twice", async () => {
  const { voiceWords } = await load("characters/voice-words.ts");
  for (const [voice, words] of [
    [{ name: "English (America), female", language: "en-us", gender: "female" }, "English (America), female"],
    [{ name: "Ada", language: "de", gender: "female" }, "Ada, German, female"],
    [{ name: "Ada", language: null, gender: null }, "Ada"],
    [{ name: "Ada", language: "no such tag" }, "Ada, no such tag"],
  ]) assert.equal(voiceWords({ id: "x", ...voice }), words);
});

test("a reply takes its text back if that was a thought, and ends with what it took", async () => {
  const { asText, isRetryable, messagesOf, withEvent } = await load("characters/conversation.ts");
  const done = { type: "reply.done", model: "m", usage: {}, times: {} };
  let turn = { role: "assistant", text: "", state: "running" };
  for (const event of [
    { type: "reply.prepared", request_id: "1" },
    { type: "reply.delta", text: "Hm. " },
    { type: "reply.retracted" },
    { type: "reply.delta", text: "At " },
    { type: "reply.delta", text: "nine." },
    done,
  ]) turn = withEvent(turn, event);
  assert.deepEqual(turn, { role: "assistant", text: "At nine.", state: "done", prepared: { type: "reply.prepared", request_id: "1" }, done });
  const failed = withEvent({ ...turn, state: "running" }, { type: "reply.failed", code: "upstream_timeout", message: "too late" });
  assert.deepEqual([failed.state, failed.failure], ["failed", "too late"]);
  assert.deepEqual(["running", "done", "stopped", "failed"].map((state) => isRetryable({ ...turn, state })), [false, false, true, true]);
  const turns = [{ role: "user", text: "When?" }, { role: "assistant", text: " ", state: "stopped" }, { role: "user", text: "Well?" }];
  assert.deepEqual(messagesOf(turns), [{ role: "user", content: "When?" }, { role: "user", content: "Well?" }]);
  assert.equal(messagesOf(Array.from({ length: 300 }, () => turns[0])).length, 200);
  assert.equal(asText([turns[0], turn], "Ada"), "Visitor: When?\n\nAda: At nine.");
});

test("text files become documents, and others are refused", async () => {
  const { MAX_FILE_BYTES, TooLong, readTextFile } = await load("characters/text-file.ts");
  assert.deepEqual(await readTextFile(new File(["zwölf"], "Opening hours.md")), { title: "Opening hours", text: "zwölf" });
  await assert.rejects(readTextFile(new File(["x".repeat(MAX_FILE_BYTES + 1)], "long.txt")), TooLong);
  await assert.rejects(readTextFile(new File([new Uint8Array([0xff, 0xfe, 0])], "picture.txt")));
  await assert.rejects(readTextFile(new File(["a\0b"], "binary.txt")));
});

test("each file that does not become a document is named with the reason", async () => {
  const { MAX_DOCUMENTS, withFiles } = await load("characters/text-file.ts");
  const present = Array.from({ length: MAX_DOCUMENTS - 1 }, (_, place) => ({ title: `${place}`, text: "" }));
  const files = [new File(["a"], "a.txt"), new File(["a\0"], "b.bin"), new File(["c"], "c.txt"), new File(["c"], "c.txt")];
  const { documents, failures } = await withFiles(files, () => present);
  assert.equal(documents.length, MAX_DOCUMENTS);
  assert.deepEqual(documents.at(-1), { title: "a", text: "a" });
  assert.equal(present.length, MAX_DOCUMENTS - 1);
  assert.deepEqual(failures.map((failure) => failure.split(" was not added: ")[0]), ["b.bin", "c.txt", "c.txt"]);
  assert.match(failures[2], /at most 100 documents/);
});

test("disclosures say which controls they hold", async () => {
  const { holds } = await load("ui/reveal.ts");
  assert.ok(holds("title- text-", "text-3"));
  assert.ok(!holds("title- text-", "personality"));
  assert.ok(!holds("", "text-3"));
  assert.ok(!holds(undefined, "text-3"));
});
