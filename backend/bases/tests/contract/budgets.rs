//! Budgets of bases, a test for each of their rules.

use super::*;

pub(super) const LIMITS: &str = "/api/knowledgebases/acme/manual/limits";
/// As long as each document of these tests, in characters, with its line break.
pub(super) const CHARACTERS: u64 = 60;

/// Routes whose models are scripted, with the base `manual`.
pub(super) struct Budgeted {
    pub(super) app: App,
    pub(super) upstream: Upstream,
    pub(super) key: String,
}

fn scripted(builder: TestRoutesBuilder, upstream: &Upstream) -> TestRoutesBuilder {
    builder.config(|config| {
        upstream.offer(config);
        upstream.embed(config, "scripted-embeddings");
        config.embedder.input_usd = Some("0.02".parse().unwrap());
        config.rewriting.model = Some("scripted-chat".to_owned());
        config.rewriting.max_output_tokens = 1_000;
        config.fetch.allow_private = true;
    })
}

impl Budgeted {
    pub(super) async fn start(database: &TestDatabase) -> Self {
        let upstream = Upstream::start().await;
        let app = start_working(scripted(builder(database), &upstream)).await;
        let key = furnished(&app).await.key;
        Self { app, upstream, key }
    }

    /// Uploads a text of [`CHARACTERS`].
    pub(super) async fn add(&self, number: usize, more: &[(&'static str, &str)]) -> String {
        let words = format!("animal{number:03} sleeps in the stable and eats hay.");
        let text = format!("{words:.<width$}\n", width = CHARACTERS as usize - 1);
        let form = fields(&[("type", "file"), ("folder", "texts")]);
        let form = more.iter().fold(form, |form, (name, value)| {
            form.text(*name, (*value).to_owned())
        });
        let form = form.part("file", file(&format!("{number:03}.txt"), text));
        let path = format!("/api/documents/{BASE}");
        self.app.advance(Duration::from_millis(1));
        let made = post(&self.app, &self.key, &path, form).await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    pub(super) async fn document(&self, id: &str) -> Value {
        document(&self.app, &self.key, id).await
    }

    pub(super) async fn budget(&self) -> Value {
        self.app.get(&self.key, LIMITS).await.expect(200)
    }

    pub(super) async fn patch(&self, body: Value) -> Answer {
        let request = self.app.request(Method::PATCH, LIMITS);
        send(request.bearer_auth(&self.key).json(&body)).await
    }

    pub(super) async fn limit(&self, body: Value) -> Value {
        self.patch(body).await.expect(200)
    }

    /// The document once nothing of the base is being worked on.
    pub(super) async fn settled(&self, id: &str) -> Value {
        settled(&self.app, &self.key).await;
        self.document(id).await
    }

    pub(super) async fn becomes(&self, id: &str, status: &str) -> Value {
        let what = format!("a document becomes {status}");
        eventually(&what, async || self.document(id).await["status"] == status).await;
        self.document(id).await
    }

    pub(super) fn asked(&self, api: Api) -> usize {
        self.upstream.requests(api).len()
    }
}

#[track_caller]
pub(super) fn is_blocked(document: &Value, step: &str) {
    assert_eq!(document["status"], "blocked", "{document}");
    assert_eq!(document[step], "blocked", "{document}");
    let error = document["processing_error"].as_str().unwrap();
    assert!(error.starts_with("BUDGET_BLOCKED:"), "{error}");
}

pub(super) const FINAL: (&str, &str) = ("use_original_as_rewritten", "true");
pub(super) const REWRITTEN: (&str, &str) = ("auto_rewrite", "true");

rule!(
    an_omitted_limit_is_kept_and_null_removes_one,
    |budgeted: Budgeted| {
        let unlimited = budgeted.budget().await;
        let nothing =
            json!({"character_limit": null, "token_limit": null, "dollar_limit_usd": null});
        assert_eq!(unlimited["limits"], nothing);
        assert_eq!(unlimited["blocked"], false);
        let exact =
            json!({"character_limit": 7, "token_limit": 8, "dollar_limit_usd": "0.00000001"});
        let changed = budgeted.limit(exact.clone()).await;
        assert_eq!(changed["limits"], exact);
        let changed = budgeted
            .limit(json!({"token_limit": 0, "dollar_limit_usd": 12.5}))
            .await;
        let expected = json!({"character_limit": 7, "token_limit": 0, "dollar_limit_usd": "12.5"});
        assert_eq!(changed["limits"], expected);
        assert_eq!(changed["tokens"]["remaining"], 0);
        assert_eq!(changed["blocking_reasons"], json!(["token_limit"]));
        assert_eq!(changed["blocked"], true);
        let changed = budgeted
            .limit(json!({"character_limit": null, "token_limit": null}))
            .await;
        assert_eq!(changed["limits"]["character_limit"], Value::Null);
        assert_eq!(changed["limits"]["dollar_limit_usd"], "12.5");
        assert_eq!(changed["blocked"], false);

        for (body, field) in [
            (json!({"token_limit": -1}), "token_limit"),
            (json!({"token_limit": "many"}), "token_limit"),
            (json!({"character_limit": 1.5}), "character_limit"),
            (json!({"character_limit": u64::MAX}), "character_limit"),
            (
                json!({"dollar_limit_usd": "0.000000001"}),
                "dollar_limit_usd",
            ),
            (json!({"dollar_limit_usd": -0.5}), "dollar_limit_usd"),
            (json!({"seconds": 5}), "seconds"),
        ] {
            let answer = budgeted.patch(body.clone()).await.expect(400);
            assert!(answer.to_string().contains(field), "{body}: {answer}");
        }
        assert_eq!(budgeted.budget().await, changed);

        // A base of another partner is nobody else's.
        let other = budgeted.app.partner("other").await;
        budgeted.app.get(&other.key, LIMITS).await.expect(403);
        let made = fields(&[
            ("name", "limited"),
            ("character_limit", "1"),
            ("token_limit", "2"),
            ("dollar_limit_usd", "0.3"),
        ]);
        let path = "/api/knowledgebases/acme";
        post(&budgeted.app, &budgeted.key, path, made)
            .await
            .expect(201);
        let path = "/api/knowledgebases/acme/limited/limits";
        let budget = budgeted.app.get(&budgeted.key, path).await.expect(200);
        let expected = json!({"character_limit": 1, "token_limit": 2, "dollar_limit_usd": "0.3"});
        assert_eq!(budget["limits"], expected);
        // It is no quota that anybody could use or see.
        let quotas = budgeted.app.get(ADMIN_KEY, "/api/quotas/acme").await;
        assert_eq!(quotas.expect(200), json!([]));
    }
);

rule!(
    zero_blocks_and_a_raised_limit_wakes_what_waits,
    |budgeted: Budgeted| {
        budgeted.limit(json!({"token_limit": 0})).await;
        let id = budgeted.add(1, &[FINAL]).await;
        let document = budgeted.becomes(&id, "blocked").await;
        is_blocked(&document, "embedding_status");
        assert_eq!(budgeted.asked(Api::Embeddings), 0);
        let waits = waiting(&budgeted.app.state).await;
        let [work] = <[WaitingWork; 1]>::try_from(waits).unwrap();
        assert_eq!(
            (work.kind, work.reason),
            (WaitingKind::Documents, WaitReason::Budget)
        );
        assert_eq!((work.partner.as_deref(), work.count), (Some("acme"), 1));
        assert!(BASE.ends_with(work.base.as_deref().unwrap()), "{work:?}");
        assert!(work.since.is_some());
        let detail = work.detail.unwrap();
        assert!(detail.contains("token_limit"), "{detail}");
        assert!(!detail.contains("BUDGET_BLOCKED"), "{detail}");
        // It remains so, and what was made of it is there.
        let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
        let content = budgeted.app.get(&budgeted.key, &path).await.expect(200);
        assert!(content["content"].as_str().unwrap().contains("animal001"));
        // Too little is no room either.
        budgeted.limit(json!({"token_limit": 1})).await;
        is_blocked(&budgeted.settled(&id).await, "embedding_status");
        budgeted.limit(json!({"token_limit": 1_000})).await;
        let ready = budgeted.becomes(&id, "ready").await;
        assert_eq!(ready["processing_error"], Value::Null);
        assert_eq!(budgeted.asked(Api::Embeddings), 1);
        let budget = budgeted.budget().await;
        let consumed = budget["tokens"]["consumed"].as_u64().unwrap();
        assert!((1..1_000).contains(&consumed), "{budget}");
        assert_eq!(budget["tokens"]["reserved"], 0);
        assert_eq!(budget["tokens"]["remaining"], 1_000 - consumed);
    }
);

rule!(
    deleting_frees_characters_and_neither_tokens_nor_dollars,
    |budgeted: Budgeted| {
        let room = 2 * CHARACTERS;
        budgeted.limit(json!({"character_limit": room})).await;
        let first = budgeted.add(1, &[FINAL]).await;
        budgeted.becomes(&first, "ready").await;
        let second = budgeted.add(2, &[FINAL]).await;
        budgeted.becomes(&second, "ready").await;
        let third = budgeted.add(3, &[FINAL]).await;
        let blocked = budgeted.becomes(&third, "blocked").await;
        is_blocked(&blocked, "digitize_status");
        let before = budgeted.budget().await;
        assert_eq!(before["characters"]["consumed"], room);
        assert_eq!(before["characters"]["remaining"], 0);
        assert_eq!(before["blocking_reasons"], json!(["character_limit"]));

        let path = format!("/api/documents/{BASE}/{first}");
        budgeted.app.delete(&budgeted.key, &path).await.expect(200);
        budgeted.becomes(&third, "ready").await;
        let after = budgeted.budget().await;
        assert_eq!(after["characters"]["consumed"], room);
        for measure in ["tokens", "dollars"] {
            let amount = |budget: &Value| budget[measure]["consumed"].clone();
            assert_ne!(
                amount(&after),
                amount(&before),
                "the third one cost something"
            );
        }
        let sum = |budget: &Value| budget["tokens"]["consumed"].as_u64().unwrap();
        // Three documents of the same length were embedded.
        assert_eq!(sum(&after) * 2, sum(&before) * 3);
    }
);

rule!(
    a_limit_below_what_was_used_is_accepted_and_blocks,
    |budgeted: Budgeted| {
        let first = budgeted.add(1, &[FINAL]).await;
        budgeted.becomes(&first, "ready").await;
        let used = budgeted.budget().await["dollars"]["consumed"].clone();
        let lowered = budgeted.limit(json!({"dollar_limit_usd": "0"})).await;
        assert_eq!(lowered["dollars"]["consumed"], used);
        assert_eq!(lowered["dollars"]["remaining"], "0");
        assert_eq!(lowered["blocking_reasons"], json!(["dollar_limit"]));
        let second = budgeted.add(2, &[FINAL]).await;
        let blocked = budgeted.becomes(&second, "blocked").await;
        is_blocked(&blocked, "embedding_status");
        assert_eq!(budgeted.document(&first).await["status"], "ready");
        assert_eq!(budgeted.asked(Api::Embeddings), 1);
        budgeted.limit(json!({"dollar_limit_usd": null})).await;
        budgeted.becomes(&second, "ready").await;
    }
);

rule!(
    a_budget_for_seven_lets_seven_of_fifty_through,
    |budgeted: Budgeted| {
        // What one takes, and what is reserved for it.
        let first = budgeted.add(0, &[FINAL]).await;
        budgeted.becomes(&first, "ready").await;
        #[derive(sqlx::FromRow)]
        struct One {
            bound_tokens: i64,
            input_tokens: i64,
        }
        let sql = "SELECT bound_tokens, input_tokens FROM knowledge_usage";
        let one: Option<One> = budgeted.app.state.store.db().fetch_one(sql).await.unwrap();
        let one = one.unwrap();
        // Six more find room for their bound after what the others used; an eighth would not.
        let limit = 6 * one.input_tokens + one.bound_tokens;
        budgeted.limit(json!({"token_limit": limit})).await;
        let slow = Script::text("").delayed(Duration::from_millis(20), Duration::ZERO);
        budgeted.upstream.set_default(Api::Embeddings, slow);
        let mut ids = vec![first];
        for number in 1..50 {
            ids.push(budgeted.add(number, &[FINAL]).await);
        }
        let counted = async |status: &str| {
            let path = format!("/api/documents/{BASE}");
            let all = budgeted.app.get(&budgeted.key, &path).await.expect(200);
            let documents = all["documents"].as_array().unwrap();
            let those = documents.iter().filter(|it| it["status"] == status);
            those.count()
        };
        let done = async || counted("ready").await == 7 && counted("blocked").await == 43;
        eventually("seven are ready and the others wait", done).await;
        assert_eq!(budgeted.asked(Api::Embeddings), 7);
        let budget = budgeted.budget().await;
        assert_eq!(budget["tokens"]["consumed"], 7 * one.input_tokens);
        assert_eq!(budget["tokens"]["reserved"], 0);

        // Those that wait go on, oldest first, as many as there is room for.
        let raised = limit + 2 * one.input_tokens;
        let ready_before = ready(&budgeted, &ids).await;
        budgeted.limit(json!({"token_limit": raised})).await;
        eventually("two more are ready", async || counted("ready").await == 9).await;
        settled(&budgeted.app, &budgeted.key).await;
        assert_eq!(counted("ready").await, 9);
        let ready_after = ready(&budgeted, &ids).await;
        let waiting: Vec<_> = ids.iter().filter(|id| !ready_before.contains(id)).collect();
        let went_on: Vec<_> = waiting
            .iter()
            .filter(|id| ready_after.contains(id))
            .collect();
        assert_eq!(went_on.len(), 2);
        assert!(
            went_on
                .iter()
                .zip(&waiting)
                .all(|(one, other)| *one == other)
        );
        budgeted.limit(json!({"token_limit": null})).await;
        eventually("all are ready", async || counted("ready").await == 50).await;
        assert_eq!(budgeted.asked(Api::Embeddings), 50);
    }
);

async fn ready(budgeted: &Budgeted, ids: &[String]) -> Vec<String> {
    let mut ready = Vec::new();
    for id in ids {
        if budgeted.document(id).await["status"] == "ready" {
            ready.push(id.clone());
        }
    }
    ready
}

rule!(
    a_forced_embedding_that_waited_is_still_forced,
    |budgeted: Budgeted| {
        let id = budgeted.add(1, &[FINAL]).await;
        budgeted.becomes(&id, "ready").await;
        budgeted.limit(json!({"token_limit": 0})).await;
        let path = format!("/api/embedding/{BASE}/documents/{id}");
        let request = budgeted.app.post(&budgeted.key, &path, Value::Null);
        request.await.expect(200);
        is_blocked(&budgeted.becomes(&id, "blocked").await, "embedding_status");
        assert_eq!(budgeted.asked(Api::Embeddings), 1);
        budgeted.limit(json!({"token_limit": null})).await;
        budgeted.becomes(&id, "ready").await;
        assert_eq!(budgeted.asked(Api::Embeddings), 2);
        // Once it was.
        let again = format!("{path}?force=false");
        let request = budgeted.app.post(&budgeted.key, &again, Value::Null);
        assert_eq!(request.await.expect(200)["job_id"], Value::Null);
    }
);

rule!(
    an_unknown_outcome_blocks_capped_work,
    |budgeted: Budgeted| {
        budgeted.limit(json!({"token_limit": 1_000_000})).await;
        let fault = Script::fault(Fault::Status(500));
        budgeted.upstream.script(Api::Chat, fault);
        let first = budgeted.add(1, &[REWRITTEN]).await;
        budgeted.becomes(&first, "failed").await;
        let budget = budgeted.budget().await;
        assert_eq!(budget["uncertain_operations"], 1, "{budget}");
        assert_eq!(budget["blocking_reasons"], json!(["uncertain_operations"]));
        let reserved = budget["tokens"]["reserved"].as_u64().unwrap();
        assert!(reserved > 1_000, "its bound stays reserved: {budget}");
        let second = budgeted.add(2, &[REWRITTEN]).await;
        let blocked = budgeted.becomes(&second, "blocked").await;
        is_blocked(&blocked, "rewrite_status");
        assert_eq!(budgeted.asked(Api::Chat), 1);
        // An administrator may know more, and nobody else.
        let path = format!("{LIMITS}/unknown");
        let decision = json!({"taken_for": "bound"});
        let mine = budgeted.app.post(&budgeted.key, &path, decision.clone());
        mine.await.expect(403);
        // Where there is no limit, nothing is to be kept to.
        let budget = budgeted.limit(json!({"token_limit": null})).await;
        assert_eq!(budget["blocked"], false);
        let rewritten = budgeted.becomes(&second, "ready").await;
        assert_eq!(rewritten["rewrite_status"], "done");
        // What is refused at once was not paid for, and is nothing that nobody knows.
        let refusal = Script::fault(Fault::Status(400));
        budgeted.upstream.script(Api::Chat, refusal);
        let third = budgeted.add(3, &[REWRITTEN]).await;
        budgeted.becomes(&third, "failed").await;
        let before = budgeted.budget().await;
        assert_eq!(before["uncertain_operations"], 1);
        let used = |budget: &Value| budget["tokens"]["consumed"].as_u64().unwrap();
        let decided = budgeted.app.post(ADMIN_KEY, &path, decision).await;
        let decided = decided.expect(200);
        assert_eq!(decided["uncertain_operations"], 0, "{decided}");
        assert_eq!(decided["tokens"]["reserved"], 0);
        assert_eq!(used(&decided), used(&before) + reserved);
    }
);

rule!(
    usage_that_is_not_told_blocks_capped_work,
    |budgeted: Budgeted| {
        let untold = Script {
            fault: Some(Fault::Untold),
            ..Script::text("# Stable\n\nIt sleeps there.")
        };
        budgeted.upstream.script(Api::Chat, untold);
        let first = budgeted.add(1, &[REWRITTEN]).await;
        budgeted.becomes(&first, "ready").await;
        let budget = budgeted.budget().await;
        assert_eq!(budget["tokens"]["unknown_events"], 1, "{budget}");
        assert_eq!(budget["dollars"]["unknown_events"], 1);
        assert_eq!(budget["blocked"], false);
        let budget = budgeted.limit(json!({"token_limit": 1_000_000})).await;
        assert_eq!(budget["blocking_reasons"], json!(["unknown_tokens"]));
        let second = budgeted.add(2, &[FINAL]).await;
        let blocked = budgeted.becomes(&second, "blocked").await;
        is_blocked(&blocked, "embedding_status");
        let more = json!({"token_limit": null, "dollar_limit_usd": 1_000});
        let budget = budgeted.limit(more).await;
        assert_eq!(budget["blocking_reasons"], json!(["unknown_dollars"]));
        is_blocked(&budgeted.settled(&second).await, "embedding_status");
        budgeted.limit(json!({"dollar_limit_usd": null})).await;
        budgeted.becomes(&second, "ready").await;
    }
);

rule!(
    a_text_without_room_waits_and_the_one_before_stays,
    |budgeted: Budgeted| {
        let id = budgeted.add(1, &[]).await;
        budgeted.becomes(&id, "digitized").await;
        let path = format!("/api/documents/{BASE}/{id}/content/digitized");
        let content = async || {
            let content = budgeted.app.get(&budgeted.key, &path).await.expect(200);
            content["content"].as_str().unwrap().to_owned()
        };
        let before = content().await;
        let longer = "A long text of the stable. ".repeat(10);

        // The request allows less: it is refused.
        let form = [("content", longer.as_str()), ("character_limit", "100")];
        let refused = put(&budgeted.app, &budgeted.key, &path, &form)
            .await
            .expect(403);
        assert!(
            refused
                .to_string()
                .contains("QUOTA_EXCEEDED:knowledge_chars")
        );
        assert_eq!(content().await, before);

        // The base has less: it waits. The smaller limit counts.
        budgeted.limit(json!({"character_limit": 100})).await;
        let form = [("content", longer.as_str()), ("character_limit", "1000")];
        let waits = put(&budgeted.app, &budgeted.key, &path, &form)
            .await
            .expect(200);
        assert_eq!(waits["status"], "budget_blocked", "{waits}");
        assert!(waits["filename"].as_str().unwrap().ends_with(".md"));
        is_blocked(&budgeted.document(&id).await, "digitize_status");
        assert_eq!(content().await, before);
        budgeted.limit(json!({"character_limit": 1_000})).await;
        budgeted.becomes(&id, "digitized").await;
        assert_eq!(content().await, longer);
        let budget = budgeted.budget().await;
        assert_eq!(budget["characters"]["consumed"], longer.chars().count());

        // So it is with a file, and with what requests allow beside the texts of others.
        let form = Form::new().part("file", file("text.md", "Short. ".repeat(200)));
        let waits = post(&budgeted.app, &budgeted.key, &path, form)
            .await
            .expect(200);
        assert_eq!(waits["status"], "budget_blocked", "{waits}");
        let other = budgeted.add(2, &[("character_limit", "100")]).await;
        let blocked = budgeted.becomes(&other, "blocked").await;
        is_blocked(&blocked, "digitize_status");
    }
);

rule!(
    the_smaller_of_a_request_limit_and_a_stored_one_counts,
    |budgeted: Budgeted| {
        for wrong in ["0", "-1", "1.5", "many"] {
            let form = fields(&[
                ("type", "file"),
                ("folder", "texts"),
                ("character_limit", wrong),
            ]);
            let form = form.part("file", file("wrong.md", "A text."));
            let documents = format!("/api/documents/{BASE}");
            let refused = post(&budgeted.app, &budgeted.key, &documents, form).await;
            assert_eq!(refused.expect(400)["field"], "character_limit", "{wrong}");
        }
        // The request allows less than the base, with a stored limit and without one.
        let strict = budgeted.add(1, &[("character_limit", "5")]).await;
        is_blocked(
            &budgeted.becomes(&strict, "blocked").await,
            "digitize_status",
        );
        budgeted.limit(json!({"character_limit": 1_000})).await;
        is_blocked(&budgeted.document(&strict).await, "digitize_status");
        // The base allows less than the request.
        budgeted.limit(json!({"character_limit": 5})).await;
        let wide = budgeted.add(2, &[("character_limit", "1000")]).await;
        is_blocked(&budgeted.becomes(&wide, "blocked").await, "digitize_status");
        // Once the base has room, the one goes on whose request has room, too.
        budgeted.limit(json!({"character_limit": 1_000})).await;
        budgeted.becomes(&wide, "digitized").await;
        is_blocked(&budgeted.document(&strict).await, "digitize_status");
    }
);

rule!(limits_hold_on_every_way_in, |budgeted: Budgeted| {
    let (app, key) = (&budgeted.app, budgeted.key.as_str());
    let documents = format!("/api/documents/{BASE}");
    let ask = async |path: &str, body: Value| app.post(key, path, body).await.expect(200);
    let (origin, _site) = site().await;

    // Texts come as files, alone and together, as addresses, alone and together, and by hand.
    budgeted.limit(json!({"character_limit": 0})).await;
    let mut ids = vec![budgeted.add(1, &[]).await];
    let form = fields(&[("folder", "texts")])
        .part("files", file("2.md", "The second text."))
        .part("files", file("3.md", "The third text."));
    let made = post(app, key, &format!("{documents}/files/batch"), form).await;
    let of = |made: &Value| {
        let results = made["results"].as_array().unwrap().iter();
        let ids = results.map(|it| it["document_id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    ids.extend(of(&made.expect(200)));
    let (lions, latin) = (format!("{origin}/lions"), format!("{origin}/latin"));
    let form = fields(&[("type", "url"), ("folder", "texts"), ("url", &lions)]);
    let made = post(app, key, &documents, form).await.expect(201);
    ids.push(made["id"].as_str().unwrap().to_owned());
    let body = json!({"folder": "texts", "urls": [latin, format!("{origin}/counted.txt")]});
    ids.extend(of(&ask(&format!("{documents}/batch"), body).await));
    let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
    let made = post(app, key, &format!("{documents}/empty"), form).await;
    let by_hand = made.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("{documents}/{by_hand}/content/digitized");
    let waits = put(app, key, &path, &[("content", "By hand.")]).await;
    assert_eq!(waits.expect(200)["status"], "budget_blocked");
    ids.push(by_hand);
    for id in &ids {
        is_blocked(&budgeted.becomes(id, "blocked").await, "digitize_status");
    }
    // Digitizing again finds no more room.
    let again = json!({"document": {"id": ids[0]}});
    let process = "/api/queue/process?partner=acme&kb=manual&action";
    ask(&format!("{process}=digitize"), again).await;
    settled(app, key).await;
    is_blocked(
        &budgeted.becomes(&ids[0], "blocked").await,
        "digitize_status",
    );

    // A rewriting is wanted with the document, alone, and for a folder and a base; an embedding with the document, and by hand.
    let limits = json!({"character_limit": null, "token_limit": 0});
    budgeted.limit(limits).await;
    for id in &ids {
        budgeted.becomes(id, "digitized").await;
    }
    let with_it = budgeted.add(10, &[REWRITTEN]).await;
    is_blocked(
        &budgeted.becomes(&with_it, "blocked").await,
        "rewrite_status",
    );
    let alone = json!({"document": {"id": ids[0]}});
    ask(&format!("{process}=rewrite"), alone).await;
    is_blocked(
        &budgeted.becomes(&ids[0], "blocked").await,
        "rewrite_status",
    );
    ask(&format!("/api/bulk/rewrite/folder/{BASE}/texts"), json!({})).await;
    for id in &ids {
        is_blocked(&budgeted.becomes(id, "blocked").await, "rewrite_status");
    }
    ask(&format!("/api/bulk/rewrite/kb/{BASE}"), json!({})).await;
    let embedded = budgeted.add(11, &[FINAL]).await;
    let blocked = budgeted.becomes(&embedded, "blocked").await;
    is_blocked(&blocked, "embedding_status");
    ask(&format!("/api/embedding/{BASE}/retry-failed"), json!({})).await;
    ask(
        &format!("/api/embedding/{BASE}/documents/{embedded}"),
        json!({}),
    )
    .await;
    let blocked = budgeted.becomes(&embedded, "blocked").await;
    is_blocked(&blocked, "embedding_status");
    assert_eq!(
        (budgeted.asked(Api::Chat), budgeted.asked(Api::Embeddings)),
        (0, 0)
    );

    // All of it goes on by itself.
    budgeted.limit(json!({"token_limit": null})).await;
    for id in ids.iter().chain([&with_it, &embedded]) {
        budgeted.becomes(id, "ready").await;
    }
});

rule!(what_was_spent_is_shown, |budgeted: Budgeted| {
    budgeted
        .upstream
        .set_default(Api::Chat, Script::text("# Stable\n\nIt sleeps there."));
    let first = budgeted.add(1, &[REWRITTEN]).await;
    budgeted.becomes(&first, "ready").await;
    let filtered = Script::fault(Fault::Finish("content_filter".to_owned()));
    budgeted.upstream.script(Api::Chat, filtered);
    let second = budgeted.add(2, &[REWRITTEN]).await;
    budgeted.becomes(&second, "failed").await;
    let listed = budgeted
        .app
        .get(&budgeted.key, "/api/knowledgebases/acme")
        .await;
    let entry = listed.expect(200)[0].clone();
    let (usage, rewrites) = (&entry["lifetime_usage"], &entry["rewrite_usage"][0]);
    assert_eq!(usage["event_count"], 3, "{entry}");
    assert_eq!(usage["priced_event_count"], 3);
    assert_eq!(usage["unpriced_event_count"], 0);
    assert_eq!(usage["rewrite_event_count"], 2);
    assert_eq!(usage["digitization_event_count"], 0);
    assert_eq!(rewrites["rewritten_count"], 1);
    assert_eq!(rewrites["rejected_count"], 1);
    assert_eq!(rewrites["complete_usage_count"], 2);
    let budget = budgeted.budget().await;
    assert_eq!(usage["cost_usd_total"], budget["dollars"]["consumed"]);
    let path = format!("/api/kb-data/{BASE}");
    let data = budgeted.app.get(&budgeted.key, &path).await.expect(200);
    assert_eq!(data["budget"], budget);
    let totals = &data["usage_totals"];
    let tokens = |name: &str| totals[name].as_u64().unwrap();
    assert_eq!(
        tokens("input_tokens") + tokens("output_tokens"),
        budget["tokens"]["consumed"].as_u64().unwrap()
    );
    assert_eq!(totals["cost_usd"], usage["cost_usd_total"]);
    assert_eq!(data["quota_info"]["characters_used"], 2 * CHARACTERS);
});

/// A model that has no price is not asked where dollars are limited.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_price_is_not_asked_within_a_limit_of_dollars() {
    let upstream = Upstream::start().await;
    let builder = scripted(builder(&TestDatabase::sqlite()), &upstream);
    let builder = builder.config(|config| config.embedder.input_usd = None);
    let app = start_working(builder).await;
    let key = furnished(&app).await.key;
    let budgeted = Budgeted { app, upstream, key };
    budgeted.limit(json!({"dollar_limit_usd": 1_000})).await;
    let id = budgeted.add(1, &[FINAL]).await;
    let blocked = budgeted.becomes(&id, "blocked").await;
    is_blocked(&blocked, "embedding_status");
    assert!(
        blocked["processing_error"]
            .as_str()
            .unwrap()
            .contains("no price")
    );
    budgeted.limit(json!({"dollar_limit_usd": null})).await;
    budgeted.becomes(&id, "ready").await;
    let budget = budgeted.budget().await;
    assert_eq!(budget["dollars"]["unknown_events"], 1, "{budget}");
    assert_eq!(budget["tokens"]["unknown_events"], 0);
    // What it used is known all the same.
    assert_eq!(budget["tokens"]["reserved"], 0);
    assert!(budget["tokens"]["consumed"].as_u64().unwrap() > 0);
}
