//! Webhooks: delivery to a TLS receiver, retries, and what the partner sees of them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy_base::clock::runtime_now;
use colloquy_config::Secret;
use colloquy_kernel::{WaitReason, WaitingKind, WaitingWork};
use colloquy_webhooks::purge;
use support::patience;
use test_routes::receiver::{Receiver, Reply, TAR_PIT};

use super::*;

const LIST: &str = "/api/webhooks/acme/deliveries";

fn builder(database: &TestDatabase, receiver: &Receiver) -> TestRoutesBuilder {
    super::builder(database).config(|config| {
        receiver.configure(config);
        config.webhooks.first_retry_ms = 20;
        config.webhooks.timeout_ms = patience(Duration::from_secs(1)).as_millis() as u64;
    })
}

/// Routes with a worker.
async fn work(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let app = start_by(builder).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    app
}

/// A call to this webhook that was created, joined and ended; its path.
async fn ended_call(
    app: &TestRoutes<Place>,
    partner: &TestPartner,
    hook: &str,
    error: Option<&'static str>,
) -> String {
    let character = format!("repo:{}/ada", partner.id);
    let body = json!({"character": character, "call_time_limit_seconds": 60, "on_completion_webhook": hook});
    let made = app.post(&partner.key, CALLS, body).await.expect(200);
    let path = made["data"]["id"].as_str().unwrap().to_owned();
    let id = bare(&path);
    calls::take(&app.state, id, None).await.unwrap().unwrap();
    calls::mark_ongoing(&app.state, id).await.unwrap();
    let outcome = Outcome {
        error: error.map(Into::into),
        call_time: Duration::from_secs(5),
        server_time: Duration::from_secs(6),
        visitor: serde_json::Map::new(),
        transcript: Vec::new(),
    };
    calls::finish(&app.state, id, outcome).await.unwrap();
    path
}

/// Waits until everything is delivered or given up, and makes sure that so many requests came of it.
async fn delivers_no_more_than(count: usize, app: &TestRoutes<Place>, receiver: &Receiver) {
    app.works_off("webhook.deliver").await;
    assert_eq!(receiver.received().len(), count, "requests at the receiver");
}

/// The newest delivery with its attempts, once it is in this state.
async fn delivery(app: &TestRoutes<Place>, acme: &TestPartner, state: &str) -> Value {
    eventually(&format!("the delivery is {state}"), || async {
        let page = app.get(&acme.key, LIST).await.expect(200);
        page["deliveries"][0]["state"] == state
    })
    .await;
    let page = app.get(&acme.key, LIST).await.expect(200);
    let id = page["deliveries"][0]["id"].as_str().unwrap();
    let path = format!("{LIST}/{id}");
    app.get(&acme.key, &path).await.expect(200)
}

on_each_database!(
    a_completed_call_is_told_once_with_its_status_and_a_signature,
    |database| {
        let receiver = Receiver::start().await;
        let key = STANDARD.encode("a secret of the receiver");
        let secret = Secret::new(format!("whsec_{key}"));
        let builder = builder(&database, &receiver);
        let builder = builder.config(|config| config.webhooks.secret = Some(secret));
        let app = work(builder).await;
        let (acme, _) = app.acme_and_other().await;
        let hook = format!("{}/hook/0?x=1", receiver.base);
        let path = ended_call(&app, &acme, &hook, None).await;
        let request = receiver.wait_for(1).await.pop().unwrap();
        assert_eq!(request.method, "POST");
        assert_eq!(request.path, "/hook/0");
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("user-agent").starts_with("Colloquy/"));
        assert_eq!(request.json(), app.get(&acme.key, &path).await.expect(200));
        assert_eq!(request.json()["data"]["state"], "completed");
        assert_eq!(request.json()["data"]["duration"]["call_seconds"], 5);

        let details = delivery(&app, &acme, "succeeded").await;
        assert_eq!(details["id"], request.header("webhook-id"));
        assert_eq!(details["event"], "call.completed");
        assert_eq!(details["subject"], path);
        assert_eq!(details["url"], hook);
        assert_eq!(details["payload"], request.json());
        assert_eq!(details["next_attempt_at"], Value::Null);
        let attempts = details["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0]["number"], 1);
        assert_eq!(attempts[0]["status"], 200);
        assert_eq!(attempts[0]["error"], Value::Null);

        let signed = format!(
            "{}.{}.{}",
            request.header("webhook-id"),
            request.header("webhook-timestamp"),
            request.body
        );
        assert_eq!(request.header("webhook-signature"), openssl_hmac(&signed));
        delivers_no_more_than(1, &app, &receiver).await;
        app.stop().await;
    }
);

/// `v1,` and the signature of a text with the receiver's secret, computed by a program that is not ours.
fn openssl_hmac(text: &str) -> String {
    use std::{io::Write as _, process};
    let mut child = process::Command::new("openssl")
        .args([
            "dgst",
            "-sha256",
            "-hmac",
            "a secret of the receiver",
            "-binary",
        ])
        .stdin(process::Stdio::piped())
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout.len(), 32);
    format!("v1,{}", STANDARD.encode(output.stdout))
}

on_each_database!(
    failures_are_tried_again_with_growing_waits_until_200,
    |database| {
        let receiver = Receiver::start().await;
        let builder = builder(&database, &receiver);
        let builder = builder.config(|config| config.webhooks.first_retry_ms = 100);
        let app = work(builder).await;
        let (acme, _) = app.acme_and_other().await;
        receiver.script([500, 204, 404].map(Reply::Status));
        ended_call(&app, &acme, &format!("{}/hook", receiver.base), None).await;
        let (attempts, waits) = app.attempts("webhook.deliver").await;
        assert_eq!((attempts, waits.len()), (4, 3));
        for (n, wait) in waits.iter().enumerate() {
            // 100 ms, 200 ms, 400 ms, each with a quarter of jitter.
            let range = (75 << n)..=(125 << n);
            assert!(
                range.contains(&wait.as_millis()),
                "{wait:?} before retry {n}"
            );
        }
        let details = delivery(&app, &acme, "succeeded").await;
        let statuses: Vec<_> = details["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|attempt| attempt["status"].clone())
            .collect();
        assert_eq!(statuses, [500, 204, 404, 200]);
        let requests = receiver.wait_for(4).await;
        for pair in requests.windows(2) {
            assert_eq!(pair[0].header("webhook-id"), pair[1].header("webhook-id"));
            assert_eq!(pair[0].body, pair[1].body);
        }
        app.stop().await;
    }
);

on_each_database!(
    after_five_retries_it_failed_and_a_resend_begins_anew,
    |database| {
        let receiver = Receiver::start().await;
        let app = work(builder(&database, &receiver)).await;
        let (acme, _) = app.acme_and_other().await;
        receiver.script((0..7).map(|_| Reply::Status(503)));
        ended_call(&app, &acme, &format!("{}/hook", receiver.base), None).await;
        app.advance_through("webhook.deliver").await;
        let details = delivery(&app, &acme, "failed").await;
        assert_eq!(details["attempt_count"], 6);
        assert_eq!(details["next_attempt_at"], Value::Null);
        delivers_no_more_than(6, &app, &receiver).await;
        let waiting = WebhooksCapability.waiting(&app.state).await.unwrap();
        let [work] = <[WaitingWork; 1]>::try_from(waiting).unwrap();
        assert_eq!(
            (work.kind, work.reason),
            (WaitingKind::Webhooks, WaitReason::Failed)
        );
        assert_eq!((work.partner.as_deref(), work.count), (Some("acme"), 1));

        let id = details["id"].as_str().unwrap();
        let resend = format!("{LIST}/{id}/resend");
        let answer = app.post(&acme.key, &resend, Value::Null).await;
        assert_eq!(answer.expect(202)["state"], "pending");
        // One more 503, then 200: the new round has attempts of its own.
        app.advance_through("webhook.deliver").await;
        let details = delivery(&app, &acme, "succeeded").await;
        assert_eq!(details["attempt_count"], 8);
        let numbers: Vec<_> = details["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|attempt| attempt["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(
            receiver
                .received()
                .iter()
                .all(|request| request.header("webhook-id") == id)
        );

        // One that succeeded can be sent again as well.
        let answer = app.post(&acme.key, &resend, Value::Null).await;
        assert_eq!(answer.status, 202);
        receiver.wait_for(9).await;
        delivery(&app, &acme, "succeeded").await;
        app.stop().await;
    }
);

on_each_database!(
    only_a_200_in_time_from_the_very_address_is_success,
    |database| {
        let receiver = Receiver::start().await;
        // In real time, in which an attempt lasts.
        let builder = builder(&database, &receiver).real_time().config(|config| {
            config.webhooks.retries = 0;
        });
        let app = work(builder).await;
        let (acme, _) = app.acme_and_other().await;
        let hook = format!("{}/hook", receiver.base);
        for (n, (reply, status)) in [
            (Reply::Status(201), json!(201)),
            (Reply::Status(202), json!(202)),
            (Reply::Status(400), json!(400)),
            (
                Reply::Redirect(format!("{}/elsewhere", receiver.base)),
                json!(302),
            ),
            (Reply::Stall, Value::Null),
        ]
        .into_iter()
        .enumerate()
        {
            receiver.script([reply]);
            let path = ended_call(&app, &acme, &hook, None).await;
            let details = delivery(&app, &acme, "failed").await;
            assert_eq!(details["subject"], path);
            assert_eq!(details["attempts"][0]["status"], status);
            if status.is_null() {
                let error = details["attempts"][0]["error"].as_str().unwrap();
                assert!(error.starts_with("timeout"), "{error}");
                assert!(details["attempts"][0]["duration_ms"].as_u64().unwrap() >= 1_000);
            }
            delivers_no_more_than(n + 1, &app, &receiver).await;
        }
        assert!(
            receiver
                .received()
                .iter()
                .all(|request| request.path == "/hook")
        );
        // What follows after the 200 is not read, however long it is.
        receiver.script([Reply::Endless]);
        ended_call(&app, &acme, &hook, None).await;
        delivery(&app, &acme, "succeeded").await;
        app.stop().await;
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_certificate_and_a_private_address_are_no_receivers() {
    let (trusted, stranger) = (Receiver::start().await, Receiver::start().await);
    for (allow_private, expected) in [(true, "certificate"), (false, "no public address")] {
        let database = TestDatabase::sqlite();
        let builder = builder(&database, &trusted).config(|config| {
            config.webhooks.retries = 0;
            config.fetch.allow_private = allow_private;
        });
        let app = work(builder).await;
        let (acme, _) = app.acme_and_other().await;
        ended_call(&app, &acme, &format!("{}/hook", stranger.base), None).await;
        let details = delivery(&app, &acme, "failed").await;
        let error = details["attempts"][0]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("127.0.0.1"), "{error}");
        app.stop().await;
    }
    assert_eq!(stranger.received().len(), 0);
}

on_each_database!(
    a_call_that_failed_or_named_no_webhook_tells_nobody,
    |database| {
        let receiver = Receiver::start().await;
        let app = work(builder(&database, &receiver)).await;
        let (acme, _) = app.acme_and_other().await;
        ended_call(
            &app,
            &acme,
            &format!("{}/hook", receiver.base),
            Some("MEDIA_FAILED"),
        )
        .await;
        ended_call(&app, &acme, "", None).await;
        delivers_no_more_than(0, &app, &receiver).await;
        assert_eq!(
            app.get(&acme.key, LIST).await.expect(200),
            json!({"deliveries": [], "next_cursor": null})
        );
        app.stop().await;
    }
);

on_each_database!(a_webhook_that_was_queued_survives_a_restart, |database| {
    let receiver = Receiver::start().await;
    let hook = format!("{}/hook", receiver.base);
    let before = start_by(builder(&database, &receiver)).await;
    let (acme, _) = before.acme_and_other().await;
    let path = ended_call(&before, &acme, &hook, None).await;
    before.stop().await;
    assert_eq!(receiver.received().len(), 0);

    // Stopped in the middle of an attempt: the lease is given back and the attempt is made again.
    receiver.script([Reply::Stall]);
    let during = work(builder(&database, &receiver)).await;
    receiver.wait_for(1).await;
    during.stop().await;

    let after = work(builder(&database, &receiver)).await;
    let requests = receiver.wait_for(2).await;
    assert_eq!(
        requests[0].header("webhook-id"),
        requests[1].header("webhook-id")
    );
    assert_eq!(
        requests[1].json(),
        after.get(&acme.key, &path).await.expect(200)
    );
    delivery(&after, &acme, "succeeded").await;
    after.stop().await;
});

on_each_database!(
    deliveries_are_paged_filtered_and_kept_from_others,
    |database| {
        let receiver = Receiver::start().await;
        let app = work(builder(&database, &receiver)).await;
        let (acme, other) = app.acme_and_other().await;
        let mut paths = Vec::new();
        for _ in 0..5 {
            paths.push(ended_call(&app, &acme, &format!("{}/hook", receiver.base), None).await);
            delivery(&app, &acme, "succeeded").await;
        }
        let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
        loop {
            let page = app
                .get(&acme.key, &format!("{LIST}{query}"))
                .await
                .expect(200);
            let deliveries = page["deliveries"].as_array().unwrap();
            seen.extend(
                deliveries
                    .iter()
                    .map(|delivery| delivery["subject"].as_str().unwrap().to_owned()),
            );
            match page["next_cursor"].as_str() {
                Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
                None => break,
            }
            assert_eq!(deliveries.len(), 2);
        }
        paths.reverse();
        assert_eq!(seen, paths);
        let count = async |query: &str| {
            let page = app
                .get(&acme.key, &format!("{LIST}{query}"))
                .await
                .expect(200);
            page["deliveries"].as_array().unwrap().len()
        };
        assert_eq!(count("?state=succeeded").await, 5);
        assert_eq!(count("?state=failed").await, 0);
        for wrong in ["?limit=0", "?limit=101", "?state=lost"] {
            let path = format!("{LIST}{wrong}");
            app.get(&acme.key, &path).await.expect(400);
        }

        let page = app.get(&acme.key, LIST).await.expect(200);
        let id = page["deliveries"][0]["id"].as_str().unwrap();
        for path in [LIST.to_owned(), format!("{LIST}/{id}")] {
            let denied = app.get(&other.key, &path).await.expect(403);
            assert_eq!(denied["detail"], "Access denied");
            app.get(ADMIN_KEY, &path).await.expect(200);
        }
        let others = format!("/api/webhooks/other/deliveries/{id}");
        app.get(&other.key, &others).await.expect(404);
        let resend = format!("{others}/resend");
        let answer = app.post(&other.key, &resend, Value::Null).await;
        assert_eq!(answer.status, 404);
        delivers_no_more_than(5, &app, &receiver).await;
        app.stop().await;
    }
);

on_each_database!(old_deliveries_go_with_their_attempts, |database| {
    let receiver = Receiver::start().await;
    let app = work(builder(&database, &receiver)).await;
    let (acme, _) = app.acme_and_other().await;
    let hook = format!("{}/hook", receiver.base);
    let old = ended_call(&app, &acme, &hook, None).await;
    delivery(&app, &acme, "succeeded").await;
    let db = app.state.store.db();
    let sql = "UPDATE webhook_deliveries SET updated_at = 0";
    db.execute(sql).await.unwrap();
    let new = ended_call(&app, &acme, &hook, None).await;
    assert_eq!(delivery(&app, &acme, "succeeded").await["subject"], new);
    assert_ne!(old, new);

    assert_eq!(purge(&app.state).await.unwrap(), 1);
    let page = app.get(&acme.key, LIST).await.expect(200);
    assert_eq!(page["deliveries"].as_array().unwrap().len(), 1);
    assert_eq!(page["deliveries"][0]["subject"], new);
    let count = db.fetch_count("SELECT COUNT(*) FROM webhook_attempts");
    assert_eq!(count.await.unwrap(), 1);
    app.stop().await;
});

on_each_database!(
    a_delivery_counts_in_the_storage_until_it_goes_with_its_age,
    |database| {
        let receiver = Receiver::start().await;
        let app = work(builder(&database, &receiver)).await;
        let (acme, _) = app.acme_and_other().await;
        let before = counted(&app).await;
        // Room for the call, and not for its delivery.
        app.limit_storage("acme", before + 2_500).await;
        let hook = format!("{}/hook?{}", receiver.base, "x".repeat(1_900));
        let path = ended_call(&app, &acme, &hook, None).await;
        let db = app.state.store.db();
        let bytes_of_calls = "SELECT CAST(COALESCE(SUM(ended_bytes), 0) AS BIGINT) FROM calls";
        let of_call = db.fetch_count(bytes_of_calls).await.unwrap();
        let payload = "SELECT CAST(SUM(octet_length(payload)) AS BIGINT) FROM webhook_deliveries";
        let payload = db.fetch_count(payload).await.unwrap();
        let of_delivery = 1_024 + hook.len() as u64 + payload;
        let both = before + of_call + of_delivery;
        assert!(both > before + 2_500, "{both}");
        assert_eq!(counted(&app).await, both);

        // The second end is none, and sending it again adds nothing.
        let id = bare(&path);
        let outcome = Outcome {
            error: None,
            call_time: Duration::from_secs(5),
            server_time: Duration::from_secs(6),
            visitor: serde_json::Map::new(),
            transcript: Vec::new(),
        };
        calls::finish(&app.state, id, outcome).await.unwrap();
        let details = delivery(&app, &acme, "succeeded").await;
        let resend = format!("{LIST}/{}/resend", details["id"].as_str().unwrap());
        app.post(&acme.key, &resend, Value::Null).await.expect(202);
        delivery(&app, &acme, "succeeded").await;
        assert_eq!(counted(&app).await, both);

        // The call goes, and the delivery stays.
        app.delete(&acme.key, &path).await.expect(204);
        assert_eq!(counted(&app).await, before + of_delivery);
        assert_eq!(purge(&app.state).await.unwrap(), 0);
        let old = "UPDATE webhook_deliveries SET updated_at = 0";
        db.execute(old).await.unwrap();
        assert_eq!(purge(&app.state).await.unwrap(), 1);
        assert_eq!(counted(&app).await, before);
        app.stop().await;
    }
);

on_each_database!(
    a_delivery_that_is_sent_again_and_again_keeps_its_newest_attempts,
    |database| {
        let receiver = Receiver::start().await;
        let app = work(builder(&database, &receiver)).await;
        let (acme, _) = app.acme_and_other().await;
        let hook = format!("{}/hook", receiver.base);
        ended_call(&app, &acme, &hook, None).await;
        let details = delivery(&app, &acme, "succeeded").await;
        let id = details["id"].as_str().unwrap();
        let numbers =
            "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 120)";
        for sql in [
            format!(
                "INSERT INTO webhook_attempts (delivery_id, number, started_at, duration_ms) \
                 {numbers} SELECT '{id}', i, 1, 1 FROM n"
            ),
            "UPDATE webhook_deliveries SET attempts = 120".to_owned(),
        ] {
            app.state.store.db().execute(sql).await.unwrap();
        }
        let resend = format!("{LIST}/{id}/resend");
        let resent = app.post(&acme.key, &resend, Value::Null).await;
        resent.expect(202);
        let details = delivery(&app, &acme, "succeeded").await;
        assert_eq!(details["attempt_count"], 121);
        let attempts = details["attempts"].as_array().unwrap();
        let numbers: Vec<&Value> = attempts.iter().map(|attempt| &attempt["number"]).collect();
        assert_eq!(numbers.len(), 100);
        assert_eq!((numbers[0], numbers[99]), (&json!(22), &json!(121)));
        app.stop().await;
    }
);

/// How many deliveries of a partner run at a time.
const PLACES: usize = 16;

on_each_database!(
    a_partner_whose_receiver_never_answers_holds_nobody_up,
    |database| {
        let receiver = Receiver::start().await;
        let builder = builder(&database, &receiver);
        let builder = builder.config(|config| config.webhooks.timeout_ms = 600_000);
        let app = work(builder).await;
        let (acme, other) = app.acme_and_other().await;
        let tar_pit = format!("{}{TAR_PIT}", receiver.base);
        for _ in 0..32 {
            ended_call(&app, &other, &tar_pit, None).await;
        }
        receiver.wait_for(PLACES).await;
        let began = runtime_now();
        for n in 0..4 {
            let hook = format!("{}/hook/{n}", receiver.base);
            ended_call(&app, &acme, &hook, None).await;
        }
        receiver.wait_for(PLACES + 4).await;
        let took = began.elapsed();
        assert!(took < patience(Duration::from_secs(5)), "{took:?}");
        let came = receiver.received();
        assert!(
            came[PLACES..]
                .iter()
                .all(|request| request.path.starts_with("/hook/"))
        );
        // What waits is not lost.
        let page = app
            .get(&other.key, "/api/webhooks/other/deliveries?limit=100")
            .await;
        let page = page.expect(200);
        let waiting = page["deliveries"].as_array().unwrap();
        assert_eq!(waiting.len(), 32);
        assert!(
            waiting
                .iter()
                .all(|delivery| delivery["state"] == "pending"),
            "{page}"
        );
    }
);

on_each_database!(deliveries_are_listed_by_subject_and_time, |database| {
    let receiver = Receiver::start().await;
    let app = work(builder(&database, &receiver)).await;
    let (acme, other) = app.acme_and_other().await;
    let hook = format!("{}/hook", receiver.base);
    let first = ended_call(&app, &acme, &hook, None).await;
    app.advance(Duration::from_secs(60));
    let second = ended_call(&app, &acme, &hook, None).await;
    let foreign = ended_call(&app, &other, &hook, None).await;
    let listed = async |query: &str| {
        let page = app.get(&acme.key, &format!("{LIST}?{query}")).await;
        let page = page.expect(200);
        page["deliveries"].as_array().unwrap().clone()
    };
    let subjects = async |query: &str| {
        let listed = listed(query).await;
        let subjects = listed.iter().map(|delivery| &delivery["subject"]);
        subjects
            .map(|subject| subject.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(subjects("").await, [second.as_str(), &first]);
    assert_eq!(
        subjects(&format!("subject={first}")).await,
        [first.as_str()]
    );
    assert_eq!(subjects(&format!("subject={foreign}")).await, [""; 0]);
    assert_eq!(
        subjects(&format!("subject={first}&state=failed")).await,
        [""; 0]
    );
    let created_at = listed(&format!("subject={second}")).await[0]["created_at"].clone();
    let created_at = created_at.as_str().unwrap();
    assert_eq!(
        subjects(&format!("created_from={created_at}")).await,
        [second.as_str()]
    );
    assert_eq!(
        subjects(&format!("created_before={created_at}")).await,
        [first.as_str()]
    );
    let wrong = app
        .get(&acme.key, &format!("{LIST}?created_from=noon"))
        .await;
    assert_eq!(wrong.status, 400, "{}", wrong.text);
    app.stop().await;
});
