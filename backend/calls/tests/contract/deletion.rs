//! Deletion of calls that have ended.

use test_routes::receiver::Receiver;

use super::*;

/// The path of a call that has ended, with a transcript.
async fn ended_call(app: &TestRoutes<Place>, partner: &TestPartner, hook: Option<&str>) -> String {
    let mut body = call();
    body["on_completion_webhook"] = json!(hook);
    let id = create(app, partner, body).await;
    let metadata = json!({"page": "/prices"});
    let taken = calls::take(&app.state, &id, metadata.as_object()).await;
    taken.unwrap().unwrap();
    calls::mark_ongoing(&app.state, &id).await.unwrap();
    let finished = calls::finish(&app.state, &id, outcome()).await;
    finished.unwrap();
    format!("/v2/calls/{id}")
}

on_each_database!(
    a_call_that_has_ended_is_deleted_with_its_transcript,
    |database| {
        let app = start(&database).await;
        let (acme, other) = app.acme_and_other().await;
        let before = counted(&app).await;
        let id = create(&app, &acme, call()).await;
        let path = format!("/v2/calls/{id}");
        let refuse_open = async |state: &str| {
            let refused = app.delete(&acme.key, &path).await.expect(409);
            assert_eq!(refused["error"]["code"], "CALL_NOT_ENDED", "{refused}");
            let read = app.get(&acme.key, &path).await.expect(200);
            assert_eq!(read["data"]["state"], state);
        };
        refuse_open("starting").await;
        let taken = calls::take(&app.state, &id, None).await;
        taken.unwrap().unwrap();
        refuse_open("starting").await;
        calls::mark_ongoing(&app.state, &id).await.unwrap();
        refuse_open("ongoing").await;
        let finished = calls::finish(&app.state, &id, outcome()).await;
        finished.unwrap();
        assert!(counted(&app).await > before);

        let deleted = app.delete(&acme.key, &path).await;
        assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
        for path in [path.clone(), format!("{path}/transcript")] {
            let unknown = app.get(&acme.key, &path).await.expect(404);
            assert_eq!(unknown["error"]["code"], "CALL_NOT_FOUND");
        }
        assert_eq!(counted(&app).await, before);
        // A late end finds nothing.
        let finished = calls::finish(&app.state, &id, outcome()).await;
        finished.unwrap();
        for (key, path) in [
            (&acme.key, path.as_str()),
            (&acme.key, "/v2/calls/x"),
            (&other.key, path.as_str()),
        ] {
            let unknown = app.delete(key, path).await.expect(404);
            assert_eq!(unknown["error"]["code"], "CALL_NOT_FOUND", "{path}");
        }
        assert_eq!(counted(&app).await, before);
        let list = app.get(&acme.key, "/v2/calls").await.expect(200);
        assert_eq!(list["data"], json!([]));
    }
);

on_each_database!(
    secret_keys_of_the_partner_delete_its_calls_and_no_others_do,
    |database| {
        let app = start(&database).await;
        let (acme, other) = app.acme_and_other().await;
        let path = ended_call(&app, &acme, None).await;
        let quota = app.quota(&acme, json!({"kinds": ["call"]})).await;
        let origin = "https://shop.example";
        let keys = [
            json!({"kind": "publishable", "allowed_origins": [origin]}),
            json!({"scopes": ["characters"]}),
            json!({"scopes": ["calls"]}),
        ];
        let mut made = Vec::new();
        for key in keys {
            let key = app.key("acme", key).await;
            made.push(key["api_key"].as_str().unwrap().to_owned());
        }
        let [publishable, unscoped, scoped] = &made[..] else {
            unreachable!()
        };
        let url = post_call(&app, &acme, call()).await;
        let signature = signed_query(url["data"]["signedUrl"].as_str().unwrap()).sig;
        for (key, status, code) in [
            (publishable, 403, "ACCESS_DENIED"),
            (unscoped, 403, "ACCESS_DENIED"),
            (&quota.key, 403, "ACCESS_DENIED"),
            (&other.key, 404, "CALL_NOT_FOUND"),
            (&signature, 401, "INVALID_API_KEY"),
            (&String::new(), 401, "INVALID_API_KEY"),
        ] {
            let request = app.request(Method::DELETE, &path);
            let request = request.header("x-api-key", key).header("origin", origin);
            let refused = send(request).await.expect(status);
            assert_eq!(refused["error"]["code"], code, "{refused}");
            app.get(&acme.key, &path).await.expect(200);
        }
        // A page does not even get to ask.
        let request = app.request(Method::OPTIONS, &path);
        let request = request.header("origin", origin);
        let request = request.header("access-control-request-method", "DELETE");
        let allowed = send(request).await;
        let methods = allowed.header("access-control-allow-methods");
        assert!(!methods.contains("DELETE"), "{methods}");

        app.delete(scoped, &path).await.expect(204);
        for key in [acme.key.as_str(), ADMIN_KEY] {
            let path = ended_call(&app, &acme, None).await;
            let encoded = path.replace('/', "%2F");
            let path = format!("/v2/calls/{encoded}");
            app.delete(key, &path).await.expect(204);
            app.delete(key, &path).await.expect(404);
        }
        counted(&app).await;
    }
);

on_each_database!(
    a_call_is_deleted_while_the_disk_is_low_and_the_storage_full,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let before = counted(&app).await;
        let path = ended_call(&app, &acme, None).await;
        app.limit_storage("acme", 0).await;
        app.post(&acme.key, CALLS, call()).await.expect(413);
        app.edge.set_disk_low(true);
        app.post(&acme.key, CALLS, call()).await.expect(507);
        app.delete(&acme.key, &path).await.expect(204);
        assert_eq!(counted(&app).await, before);
    }
);

on_each_database!(
    a_webhook_that_is_pending_is_delivered_after_its_call_was_deleted,
    |database| {
        let receiver = Receiver::start().await;
        let builder = builder(&database).config(|config| receiver.configure(config));
        let app = start_by(builder).await;
        let (acme, _) = app.acme_and_other().await;
        let hook = format!("{}/hook", receiver.base);
        let path = ended_call(&app, &acme, Some(&hook)).await;
        let told = app.get(&acme.key, &path).await.expect(200);
        app.delete(&acme.key, &path).await.expect(204);
        app.start_worker(&CAPABILITIES, quick()).await;
        let received = receiver.wait_for(1).await;
        assert_eq!(received[0].json(), told);
        let deliveries = "/api/webhooks/acme/deliveries";
        let listed = app.get(&acme.key, deliveries).await.expect(200);
        assert_eq!(listed["deliveries"][0]["subject"], path);
        app.stop().await;
    }
);

on_each_database!(
    a_call_that_was_presumed_lost_is_kept_for_the_outcome_of_its_node,
    |database| {
        let app = start_by(builder(&database)).await;
        let (acme, _) = app.acme_and_other().await;
        let path = ended_call(&app, &acme, None).await;
        let id = path.trim_start_matches("/v2/calls/");
        let lost = format!(
            "UPDATE calls SET state = 'error', error_code = 'NODE_LOST', node_id = 'gone' WHERE id = '{id}'"
        );
        app.state.store.db().execute(lost).await.unwrap();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        for passed in [0, 9] {
            app.advance(minutes(passed));
            let refused = app.delete(&acme.key, &path).await.expect(409);
            assert_eq!(refused["error"]["code"], "CALL_NOT_ENDED", "{refused}");
        }
        app.advance(minutes(1));
        app.delete(&acme.key, &path).await.expect(204);
    }
);
