//! Lists of folders and of knowledge bases.

use super::{
    lists::{DOCUMENTS, ids, pages, run, sorted, tied, write},
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

        let budgets = app.get(&key, "/api/kb-list/acme").await.expect(200);
        let bases = budgets["knowledge_bases"].as_array().unwrap();
        let names: Vec<&str> = bases
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["b", "manual", "Zoo", "ähnlich"]);
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
