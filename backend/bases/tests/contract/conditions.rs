//! What people write over what others wrote.

use super::{
    budgets::{Budgeted, is_blocked},
    *,
};

/// Writes a content with the headers of a condition.
async fn write(
    app: &App,
    key: &str,
    (method, path): (Method, &str),
    text: &str,
    conditions: &[(&str, &str)],
) -> Answer {
    let form = match method {
        Method::PUT => fields(&[("content", text)]),
        _ => Form::new().part("file", file("text.md", text)),
    };
    let request = app.request(method, path).bearer_auth(key).multipart(form);
    let conditions = conditions.iter();
    send(conditions.fold(request, |request, (name, value)| {
        request.header(name, value)
    }))
    .await
}

on_each_database!(what_somebody_wrote_since_is_not_overwritten, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    let key = key.as_str();
    let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
    let made = post(&app, key, &format!("/api/documents/{BASE}/empty"), form).await;
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    for variant in ["digitized", "rewritten", "original"] {
        let path = format!("/api/documents/{BASE}/{id}/content/{variant}");
        let conflict = |answer: Answer| {
            let refused = answer.expect(409);
            assert_eq!(refused["code"], "content_changed", "{variant}: {refused}");
        };
        let put = async |text: &str, conditions: &[(&str, &str)]| {
            write(&app, key, (Method::PUT, &path), text, conditions).await
        };
        let post = async |text: &str, conditions: &[(&str, &str)]| {
            write(&app, key, (Method::POST, &path), text, conditions).await
        };
        for any in ["*", "\"00\""] {
            conflict(put("none", &[("if-match", any)]).await);
            conflict(post("none", &[("if-match", any)]).await);
        }
        let first = put("first", &[("if-none-match", "*")]).await;
        first.expect(200);
        let first = first.header("etag").to_owned();
        let read = app.get(key, &path).await;
        read.expect(200);
        assert_eq!(read.header("etag"), first);
        conflict(put("again", &[("if-none-match", "*")]).await);
        conflict(post("again", &[("if-none-match", "*")]).await);
        let second = put("second", &[("if-match", &first)]).await;
        second.expect(200);
        assert_ne!(second.header("etag"), first);
        conflict(put("third", &[("if-match", &first)]).await);
        conflict(post("third", &[("if-match", &first)]).await);
        let read = app.get(key, &path).await;
        assert_eq!(read.expect(200)["content"], "second");
        let download = path.replace("/content/", "/download/");
        let second = app.get(key, &download).await.header("etag").to_owned();
        // As a proxy that compresses returns it.
        let weak = format!("W/{second}");
        post("third", &[("if-match", &weak)]).await.expect(200);
        // Of two at once, one finds what the other one wrote.
        let third = app.get(key, &path).await.header("etag").to_owned();
        let same = [("if-match", third.as_str())];
        let (one, other) = tokio::join!(put("one", &same), put("other", &same));
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{variant}");
        put("any", &[("if-match", "*")]).await.expect(200);
        put("any", &[]).await.expect(200);
        for (name, value) in [("if-match", "any"), ("if-none-match", "\"00\"")] {
            let refused = put("x", &[(name, value)]).await.expect(400);
            let field = refused["field"].as_str().unwrap();
            assert_eq!(field.to_lowercase(), name);
        }
    }
});

rule!(
    a_text_that_waits_is_not_overwritten_by_a_conditional_write,
    |budgeted: Budgeted| {
        let (app, key) = (&budgeted.app, budgeted.key.as_str());
        let (long, short) = ("a".repeat(40), "b".repeat(12));
        for has_text in [true, false] {
            let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
            let made = post(app, key, &format!("/api/documents/{BASE}/empty"), form).await;
            let id = made.expect(201)["id"].as_str().unwrap().to_owned();
            let path = format!("/api/documents/{BASE}/{id}/content/digitized");
            let put = async |text: &str, conditions: &[(&str, &str)]| {
                write(app, key, (Method::PUT, &path), text, conditions).await
            };
            let mut tag = "*".to_owned();
            if has_text {
                let first = put("first", &[]).await;
                first.expect(200);
                tag = first.header("etag").to_owned();
            }
            let name = if has_text {
                "if-match"
            } else {
                "if-none-match"
            };
            let condition = [(name, tag.as_str())];
            budgeted.limit(json!({"character_limit": 15})).await;
            let (one, other) = tokio::join!(put(&long, &condition), put(&long, &condition));
            let (waits, refused) = match one.status.as_u16() {
                200 => (one, other),
                _ => (other, one),
            };
            assert_eq!(waits.expect(200)["status"], "budget_blocked");
            assert_eq!(waits.header("etag"), "");
            assert_eq!(refused.expect(409)["code"], "content_changed");
            for (method, text) in [(Method::PUT, &short), (Method::POST, &long)] {
                for name in ["if-match", "if-none-match"] {
                    let condition = [(name, if name == "if-match" { &*tag } else { "*" })];
                    let target = (method.clone(), path.as_str());
                    let refused = write(app, key, target, text, &condition).await;
                    assert_eq!(refused.expect(409)["code"], "content_changed", "{name}");
                }
            }
            is_blocked(&budgeted.document(&id).await, "digitize_status");

            // The other contents have conditions of their own.
            let rewritten = path.replace("digitized", "rewritten");
            let absent = [("if-none-match", "*")];
            let target = (Method::PUT, rewritten.as_str());
            write(app, key, target, "final", &absent).await.expect(200);

            // Once it is accepted, it has an `ETag`.
            budgeted.limit(json!({"character_limit": 1_000})).await;
            eventually("the text is accepted", async || {
                app.get(key, &path).await.text.contains(&long)
            })
            .await;
            let tag = app.get(key, &path).await.header("etag").to_owned();
            put(&short, &[("if-match", &tag)]).await.expect(200);

            // Without a condition it is replaced.
            budgeted.limit(json!({"character_limit": 15})).await;
            let waits = put(&long, &[]).await;
            assert_eq!(waits.expect(200)["status"], "budget_blocked");
            put("c", &[]).await.expect(200);
            let read = app.get(key, &path).await.expect(200);
            assert_eq!(read["content"], "c");
            budgeted.limit(json!({"character_limit": null})).await;
        }
    }
);
