//! Lists of folders and of knowledge bases.

use std::collections::HashMap;

use super::{
    list_columns::Numbers,
    lists::{DOCUMENTS, STEPS, id_of, ids, pages, run, sorted, tied, write},
    *,
};

on_each_database!(
    folders_and_bases_have_the_sums_of_their_documents,
    |database| {
        let app = start(&database).await;
        let key = furnished(&app).await.key;
        for name in ["more", "Öffentlich", "empty"] {
            let form = fields(&[("name", name)]);
            post(&app, &key, "/api/folders/acme/manual", form)
                .await
                .expect(201);
        }
        let channel = fields(&[
            ("name", "videos"),
            ("type", "video_channel"),
            ("channel_url", "@zoo"),
        ]);
        post(&app, &key, "/api/folders/acme/manual", channel)
            .await
            .expect(201);
        for (name, limit) in [("Zoo", "7"), ("ähnlich", "0"), ("b", "3")] {
            let form = fields(&[
                ("name", name),
                ("character_limit", limit),
                ("token_limit", limit),
            ]);
            post(&app, &key, "/api/knowledgebases/acme", form)
                .await
                .expect(201);
        }
        write(&app, &tied()).await;
        run(
            &app,
            "UPDATE quota_amounts SET used = 250 WHERE measure = 'cost'",
        )
        .await;
        run(&app, "INSERT INTO quota_amounts (quota, measure, used, reserved) SELECT id, 'cost', 700, 0 FROM knowledge_bases WHERE name IN ('manual', 'b') \
               ON CONFLICT DO NOTHING").await;

        let path = "/api/folder-list/acme/manual";
        let first = app.get(&key, path).await.expect(200);
        let folders = first["folders"].as_array().unwrap();
        let names: Vec<&str> = folders
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["empty", "more", "texts", "videos", "Öffentlich"]);
        for folder in folders {
            let path = format!(
                "{DOCUMENTS}?limit=1&folder={}",
                folder["name"].as_str().unwrap()
            );
            let list = app.get(&key, &path).await.expect(200);
            assert_eq!(folder["documents"], list["total"]);
            for field in ["size_bytes", "text_characters", "tokens", "spend"] {
                assert_eq!(folder[field], list["sums"][field], "{field}");
            }
            let failed = app
                .get(&key, &format!("{path}&state=failed"))
                .await
                .expect(200);
            assert_eq!(folder["failed"], failed["total"]);
            assert_eq!(folder["channel"].is_object(), folder["name"] == "videos");
        }
        let videos = &folders[3]["channel"];
        assert_eq!(
            (&videos["channel_url"], &videos["counts"]["pending"]),
            (&json!("@zoo"), &json!(0))
        );
        let all = app
            .get(&key, &format!("{DOCUMENTS}?limit=1"))
            .await
            .expect(200);
        assert_eq!(first["sums"], all["sums"]);
        let regular = app
            .get(&key, &format!("{path}?type=regular&q=E"))
            .await
            .expect(200);
        assert_eq!(regular["total"], 4);
        let more = app.get(&key, &format!("{path}?q=MOR")).await.expect(200);
        assert_eq!(
            (&more["total"], &more["sums"]["documents"]),
            (&json!(1), &json!(8))
        );

        let named = async |state: &str| {
            let path = format!("/api/kb-list/acme?state={state}");
            let list = app.get(&key, &path).await.expect(200);
            let bases = list["knowledge_bases"].as_array().unwrap().iter();
            let names: Vec<String> = bases
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(list["total"], names.len());
            names
        };
        let budgets = app.get(&key, "/api/kb-list/acme").await.expect(200);
        let bases = budgets["knowledge_bases"].as_array().unwrap();
        let names: Vec<&str> = bases
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["b", "manual", "Zoo", "ähnlich"]);
        for (state, field) in [
            ("failed", "failed"),
            ("blocked", "blocked"),
            ("active", "active"),
        ] {
            let expected = bases.iter().filter(|base| base[field] != 0);
            let expected: Vec<_> = expected
                .map(|base| base["name"].as_str().unwrap())
                .collect();
            assert_eq!(named(state).await, expected, "{state}");
        }
        assert_eq!(named("failed,blocked,active").await, ["manual"]);
        let refused = app.get(&key, "/api/kb-list/acme?state=ready").await;
        assert_eq!(refused.expect(400)["field"], "state");
        for base in bases {
            let name = base["name"].as_str().unwrap();
            let limits = app
                .get(&key, &format!("/api/knowledgebases/acme/{name}/limits"))
                .await;
            assert_eq!(base["budget"], limits.expect(200), "{name}");
            let stats = app
                .get(&key, &format!("/api/kb-stats/acme/{name}"))
                .await
                .expect(200);
            assert_eq!(base["documents"], stats["document_count"]);
            assert_eq!(base["text_characters"], stats["total_digitized_chars"]);
        }
        assert_eq!(bases[1]["size_bytes"], all["sums"]["size_bytes"]);
        assert_eq!(bases[1]["folders"], 5);
        assert_eq!(budgets["sums"]["documents"], 23);
        let found = app
            .get(&key, "/api/kb-list/acme?q=%C3%84HN")
            .await
            .expect(200);
        assert_eq!(
            (&found["total"], &found["knowledge_bases"][0]["name"]),
            (&json!(1), &json!("ähnlich"))
        );

        // Ties are in the order of ids, in either direction.
        for (path, field) in [(path, "folders"), ("/api/kb-list/acme", "knowledge_bases")] {
            for sort in ["name", "price", "size"] {
                for order in ["asc", "desc"] {
                    let path = format!("{path}?sort={sort}&order={order}");
                    let whole = app.get(&key, &path).await.expect(200);
                    let whole = whole[field].as_array().unwrap().clone();
                    let with_spend: Vec<Value> = whole
                    .iter()
                    .map(|it| match it["cost_usd"].is_string() {
                        true => json!({"id": it["id"], "name": it["name"], "size_bytes": it["size_bytes"],
                            "spend": {"display": "$", "usd": it["cost_usd"]}}),
                        false => it.clone(),
                    })
                    .collect();
                    assert_eq!(ids(&whole), sorted(&with_spend, sort, order), "{path}");
                    let paged = pages(&app, &key, &format!("{path}&limit=2"), field).await;
                    assert_eq!(paged, whole, "{path}");
                }
            }
        }
    }
);

on_each_database!(
    bases_that_are_closest_to_their_limits_come_first,
    |database| {
        let app = start(&database).await;
        let key = furnished(&app).await.key;
        for name in ["tokens", "characters", "full", "zero"] {
            let form = fields(&[("name", name)]);
            let made = post(&app, &key, "/api/knowledgebases/acme", form).await;
            made.expect(201);
        }
        let limit = |base: &str, measure: &str, limit: u64, used: u64, reserved: u64| {
            format!(
                "INSERT INTO quota_amounts (quota, measure, limit_amount, used, reserved) SELECT id, '{measure}', {limit}, {used}, {reserved} \
             FROM knowledge_bases WHERE name = '{base}' \
             ON CONFLICT (quota, measure) DO UPDATE SET limit_amount = excluded.limit_amount, used = excluded.used, reserved = excluded.reserved"
            )
        };
        for sql in [
            limit("tokens", "tokens", 1_000, 200, 50),
            limit("tokens", "cost", 1_000_000_000_000_000, 1, 0),
            limit("full", "cost", 1, 1_000_000_000_000_000, 0),
            limit("zero", "tokens", 0, 0, 0),
            "UPDATE knowledge_bases SET character_limit = 100 WHERE name = 'characters'".to_owned(),
        ] {
            run(&app, &sql).await;
        }
        let names = async || {
            let listed = pages(
                &app,
                &key,
                "/api/kb-list/acme?sort=limit&limit=2",
                "knowledge_bases",
            )
            .await;
            let mut names: Vec<String> = listed
                .iter()
                .map(|it| it["name"].as_str().unwrap().to_owned())
                .collect();
            // Nothing can be used of either.
            names[..2].sort_unstable();
            names
        };
        assert_eq!(
            names().await,
            ["full", "zero", "tokens", "characters", "manual"]
        );
        // Texts of the base count, unless they are being deleted.
        let folder = fields(&[("name", "texts")]);
        post(&app, &key, "/api/folders/acme/characters", folder)
            .await
            .expect(201);
        let document = "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, \
                    use_original_as_rewritten, digitizing, rewriting, embedding, revision, created_at, updated_at, text_characters) \
                    SELECT 'd', b.id, f.id, 'text', 'file', 'auto', 'standard', FALSE, FALSE, 'none', 'none', 'none', 0, 1, 1, 30 \
                    FROM knowledge_bases b JOIN knowledge_folders f ON f.base_id = b.id WHERE b.name = 'characters'";
        run(&app, document).await;
        assert_eq!(
            names().await,
            ["full", "zero", "characters", "tokens", "manual"]
        );
        run(
            &app,
            "UPDATE knowledge_documents SET deletion_requested_at = 1",
        )
        .await;
        assert_eq!(
            names().await,
            ["full", "zero", "tokens", "characters", "manual"]
        );
    }
);

/// The groups of states that lists count.
const GROUPS: [(&str, &str); 3] = [
    ("active", "digitizing,rewriting,embedding"),
    ("blocked", "blocked"),
    ("failed", "failed"),
];

/// Compares a base or a folder of a list with the documents that `path` lists.
async fn assert_figures(app: &App, key: &str, listed: &Value, path: &str) {
    let documents = app.get(key, path).await.expect(200);
    assert_eq!(listed["documents"], documents["total"], "{path}");
    for (field, sum) in documents["sums"].as_object().unwrap() {
        if listed.get(field).is_some() {
            assert_eq!(&listed[field], sum, "{field}: {path}");
        }
    }
    for (field, states) in GROUPS {
        let path = format!("{path}&state={states}");
        let documents = app.get(key, &path).await.expect(200);
        assert_eq!(listed[field], documents["total"], "{path}");
    }
}

/// Compares the sums of a list with those of its entries, for first pages of all lengths. Returns the whole list.
async fn assert_sums(app: &App, key: &str, path: &str, field: &str) -> Value {
    let whole = app.get(key, path).await.expect(200);
    let entries = whole[field].as_array().unwrap();
    assert_eq!(whole["total"], entries.len());
    let added = ["documents", "size_bytes", "text_characters", "tokens"];
    for (sum, value) in whole["sums"].as_object().unwrap() {
        if added.contains(&sum.as_str()) {
            let total: i64 = entries.iter().map(|it| it[sum].as_i64().unwrap()).sum();
            assert_eq!(value, total, "{sum}: {path}");
        }
    }
    for limit in 1..=entries.len() {
        let sort = ["name", "price", "size"][limit % 3];
        let path = format!("{path}?sort={sort}&limit={limit}");
        let page = app.get(key, &path).await.expect(200);
        assert_eq!(page["total"], whole["total"], "{path}");
        assert_eq!(page["sums"], whole["sums"], "{path}");
    }
    whole
}

/// Compares the lists of bases and of folders with those of documents, and with what is said of a single base.
async fn assert_lists(app: &App, key: &str) {
    let single = app.get(key, "/api/knowledgebases/acme").await.expect(200);
    let single = single.as_array().unwrap().iter();
    let embedding: HashMap<&str, &Value> = single
        .map(|base| (base["name"].as_str().unwrap(), &base["embedding_status"]))
        .collect();
    let bases = assert_sums(app, key, "/api/kb-list/acme", "knowledge_bases").await;
    for base in bases["knowledge_bases"].as_array().unwrap() {
        let name = base["name"].as_str().unwrap();
        let documents = format!("/api/document-list/acme/{name}?limit=1");
        assert_figures(app, key, base, &documents).await;
        assert_eq!(&base["embedding_status"], embedding[name], "{name}");
        let limits = format!("/api/knowledgebases/acme/{name}/limits");
        assert_eq!(base["budget"], app.get(key, &limits).await.expect(200));
        let path = format!("/api/folder-list/acme/{name}");
        let folders = assert_sums(app, key, &path, "folders").await;
        let whole = app.get(key, &documents).await.expect(200);
        assert_eq!(folders["sums"], whole["sums"], "{path}");
        for folder in folders["folders"].as_array().unwrap() {
            let name = folder["name"].as_str().unwrap();
            let documents = format!("{documents}&folder={name}");
            assert_figures(app, key, folder, &documents).await;
        }
    }
}

on_each_database!(figures_are_those_of_the_documents_at_any_time, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    for name in ["b", "zoo"] {
        let form = fields(&[("name", name)]);
        post(&app, &key, "/api/knowledgebases/acme", form)
            .await
            .expect(201);
        let folder = fields(&[("name", "others")]);
        let path = format!("/api/folders/acme/{name}");
        post(&app, &key, &path, folder).await.expect(201);
    }
    for name in ["more", "last"] {
        let form = fields(&[("name", name)]);
        post(&app, &key, "/api/folders/acme/manual", form)
            .await
            .expect(201);
    }
    write(&app, &tied()).await;
    let mut numbers = Numbers(11);
    for round in 0..160_usize {
        let document = id_of(numbers.below(23));
        let change = match numbers.below(6) {
            0 => {
                let name = numbers.of(&["texts", "more", "last"]);
                format!("folder_id = (SELECT id FROM knowledge_folders WHERE name = '{name}')")
            }
            1 => "deletion_requested_at = CASE WHEN deletion_requested_at IS NULL THEN 1 END"
                .to_owned(),
            2 => "digitizing = 'done', rewriting = 'done', embedding = 'done'".to_owned(),
            _ => format!(
                "digitizing = '{}', rewriting = '{}', embedding = '{}'",
                numbers.of(&STEPS),
                numbers.of(&STEPS),
                numbers.of(&STEPS)
            ),
        };
        run(
            &app,
            format!("UPDATE knowledge_documents SET {change} WHERE id = '{document}'"),
        )
        .await;
        let (document, variant) = (
            id_of(numbers.below(23)),
            numbers.of(&["original", "digitized", "rewritten"]),
        );
        let content = match numbers.below(3) {
            0 => format!(
                "DELETE FROM knowledge_contents WHERE document_id = '{document}' AND variant = '{variant}'"
            ),
            _ => format!(
                "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at) \
                 VALUES ('{document}', '{variant}', 'written', 'f', 't', {round}, {}, 's', 0) \
                 ON CONFLICT (document_id, variant) DO UPDATE SET bytes = excluded.bytes, characters = excluded.characters",
                numbers.below(1_000)
            ),
        };
        run(&app, content).await;
        match round % 20 {
            7 => {
                let form = fields(&[
                    ("name", &format!("empty {round}")),
                    ("folder", "others"),
                    ("type", "file"),
                ]);
                let path = format!("/api/documents/acme/{}/empty", numbers.of(&["b", "zoo"]));
                post(&app, &key, &path, form).await.expect(201);
                let step = numbers.of(&["failed", "running", "blocked"]);
                run(&app, format!("UPDATE knowledge_documents SET embedding = '{step}' WHERE name = 'empty {round}'")).await;
            }
            13 => {
                let name = numbers.of(&["texts", "more", "last"]);
                run(&app, format!(
                    "UPDATE knowledge_folders SET deletion_requested_at = CASE WHEN deletion_requested_at IS NULL THEN 1 END WHERE name = '{name}'"
                )).await;
            }
            19 => assert_lists(&app, &key).await,
            _ => {}
        }
    }
});
