//! Lists that the database sorts, filters and sums.

use std::collections::{BTreeMap, HashMap};

use super::*;

pub(super) const DOCUMENTS: &str = "/api/document-list/acme/manual";
pub(super) const STEPS: [&str; 6] = ["none", "queued", "running", "done", "failed", "blocked"];
const SORTS: [&str; 6] = ["name", "price", "size", "tokens", "changed", "state"];

/// A document that is written by SQL.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) number: usize,
    pub(super) folder: &'static str,
    pub(super) name: String,
    pub(super) steps: [&'static str; 3],
    /// Variant, bytes, characters.
    pub(super) contents: Vec<(&'static str, usize, usize)>,
    /// Cost, `complete`, `asking`.
    pub(super) rewrite: Option<(usize, bool, bool)>,
    /// Costs of transcription requests; the unknown ones are null.
    pub(super) readings: Vec<Option<usize>>,
    pub(super) is_going: bool,
}

pub(super) fn id_of(number: usize) -> String {
    format!("00000000-0000-7000-8000-{number:012}")
}

pub(super) async fn run(app: &App, sql: impl Into<String>) -> u64 {
    let sql: String = sql.into();
    app.state.store.db().execute(sql).await.unwrap()
}

pub(super) async fn scalar(app: &App, sql: impl Into<String>) -> String {
    let sql: String = sql.into();
    let found: Option<String> = app.state.store.db().fetch_scalar(sql).await.unwrap();
    found.unwrap()
}

async fn run_of(app: &App, begin: &str, rows: &[String]) {
    for rows in rows.chunks(250) {
        run(app, format!("{begin} {}", rows.join(", "))).await;
    }
}

/// Writes documents as nodes of an earlier version do.
pub(super) async fn write(app: &App, rows: &[Row]) {
    let base = scalar(app, "SELECT id FROM knowledge_bases WHERE name = 'manual'").await;
    let mut folders = HashMap::new();
    for row in rows {
        if !folders.contains_key(row.folder) {
            let sql = format!(
                "SELECT id FROM knowledge_folders WHERE name = '{}'",
                row.folder
            );
            folders.insert(row.folder, scalar(app, sql).await);
        }
    }
    run(app, "INSERT INTO blobs (key, owner, state, bytes, updated_at) VALUES ('written', 'acme', 'kept', 1, 1) ON CONFLICT DO NOTHING").await;
    let (mut documents, mut contents, mut rewrites) = (Vec::new(), Vec::new(), Vec::new());
    let (mut requests, mut settled) = (Vec::new(), Vec::new());
    for row in rows {
        let (id, number) = (id_of(row.number), row.number);
        let [digitizing, rewriting, embedding] = row.steps;
        let has = |step| row.steps.contains(&step);
        let error = match has("failed") || has("blocked") {
            true => format!("'why {number}'"),
            false => "NULL".to_owned(),
        };
        let going = if row.is_going { "1" } else { "NULL" };
        documents.push(format!(
            "('{id}', '{base}', '{}', '{}', 'file', 'auto', 'standard', FALSE, FALSE, '{digitizing}', '{rewriting}', '{embedding}', {error}, 0, \
             {number}, {}, {going})",
            folders[row.folder],
            row.name,
            number / 3,
        ));
        for (variant, bytes, characters) in &row.contents {
            contents.push(format!(
                "('{id}', '{variant}', 'written', 'f', 'text/plain', {bytes}, {characters}, '{number}', 0)"
            ));
        }
        if let Some((cost, complete, asking)) = row.rewrite {
            rewrites.push(format!(
                "('{id}', 0, 'm', 1, 1, {asking}, 3, 4, {cost}, {complete}, 0)"
            ));
        }
        for (place, cost) in row.readings.iter().enumerate() {
            let request = format!("{number}-{place}");
            requests.push(format!(
                "('{request}', '{base}', '{id}', 'transcribe', 'm', FALSE, 'n', 'pending', FALSE, {number})"
            ));
            let cost = cost.map_or("NULL".to_owned(), |cost| cost.to_string());
            settled.push(format!(
                "UPDATE knowledge_usage SET outcome = 'success', input_tokens = {place}, output_tokens = NULL, cost = {cost} WHERE id = '{request}'"
            ));
        }
    }
    run_of(app, "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, use_original_as_rewritten, \
        digitizing, rewriting, embedding, processing_error, revision, created_at, updated_at, deletion_requested_at) VALUES", &documents).await;
    run_of(app, "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at) VALUES", &contents).await;
    run_of(app, "INSERT INTO knowledge_rewrites (document_id, revision, model, sections, done, asking, input_tokens, output_tokens, cost, complete, updated_at) VALUES", &rewrites).await;
    run_of(app, "INSERT INTO knowledge_usage (id, base_id, document_id, kind, model, local, node_id, outcome, unknown, created_at) VALUES", &requests).await;
    for sql in settled {
        run(app, sql).await;
    }
}

/// All pages of a list, whose entries stand in a field.
pub(super) async fn pages(app: &App, key: &str, path: &str, field: &str) -> Vec<Value> {
    let (mut path, mut entries) = (path.to_owned(), Vec::new());
    loop {
        let answer = app.get(key, &path).await;
        let next = answer.headers.get("link").map(|link| {
            let link = link.to_str().unwrap();
            let (target, rel) = link.split_once(">; ").unwrap();
            assert_eq!(rel, "rel=\"next\"");
            target.strip_prefix('<').unwrap().to_owned()
        });
        let page = answer.expect(200);
        let is_first = entries.is_empty() && !path.contains("cursor=");
        assert_eq!(page["total"].is_number(), is_first, "{path}");
        assert_eq!(page["sums"].is_object(), is_first, "{path}");
        assert_eq!(page["next_cursor"].is_string(), next.is_some());
        let listed = page[field].as_array().unwrap();
        assert!(next.is_none() || !listed.is_empty());
        entries.extend(listed.iter().cloned());
        match next {
            Some(next) => path = next,
            None => return entries,
        }
    }
}

/// Units of 1e-8 dollars.
fn units(usd: &Value) -> i64 {
    let usd: colloquy_base::money::Usd = usd.as_str().unwrap().parse().unwrap();
    i64::try_from(usd.0).unwrap()
}

/// What a list is sorted by, as texts and numbers compare.
fn key_of(entry: &Value, sort: &str) -> (i64, String) {
    let number = |field: &str| (entry[field].as_i64().unwrap(), String::new());
    match sort {
        "name" => (0, entry["name"].as_str().unwrap().to_lowercase()),
        "state" => (0, entry["state"].as_str().unwrap().to_owned()),
        "size" => number("size_bytes"),
        "tokens" => number("tokens"),
        "changed" => {
            let changed: jiff::Timestamp = entry["updated_at"].as_str().unwrap().parse().unwrap();
            (changed.as_millisecond(), String::new())
        }
        _ => {
            let spend = &entry["spend"];
            let price = match spend["display"].as_str().unwrap() {
                "—" => -2,
                "n/a" => -1,
                _ => units(&spend["usd"]),
            };
            (price, String::new())
        }
    }
}

/// Ids in the order that a sort asks for.
pub(super) fn sorted(entries: &[Value], sort: &str, order: &str) -> Vec<String> {
    let mut entries: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                key_of(entry, sort),
                ids(std::slice::from_ref(entry)).remove(0),
            )
        })
        .collect();
    entries.sort_by(|(key, id), (other, other_id)| {
        let keys = match order {
            "asc" => key.cmp(other),
            _ => other.cmp(key),
        };
        keys.then_with(|| id.cmp(other_id))
    });
    entries.into_iter().map(|(_, id)| id).collect()
}

pub(super) fn ids(entries: &[Value]) -> Vec<String> {
    let ids = entries.iter().map(|entry| entry["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

const REWRITES: [Option<(usize, bool, bool)>; 5] = [
    None,
    Some((0, true, false)),
    Some((0, false, false)),
    Some((5_000, true, false)),
    Some((7_000, true, true)),
];

fn readings(number: usize) -> Vec<Option<usize>> {
    match number % 4 {
        0 => vec![],
        1 => vec![Some(300)],
        2 => vec![None],
        _ => vec![Some(300), None],
    }
}

on_each_database!(states_and_spends_are_those_of_the_documents, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    let mut rows = Vec::new();
    for digitizing in STEPS {
        for rewriting in STEPS {
            for embedding in STEPS {
                for made in 0..3 {
                    let number = rows.len();
                    let text = ("digitized", 7 * number, number);
                    let last = ("rewritten", 5, 2 * number);
                    rows.push(Row {
                        number,
                        folder: "texts",
                        name: format!("Document {}", number % 50),
                        steps: [digitizing, rewriting, embedding],
                        contents: [vec![], vec![text], vec![text, last]][made].clone(),
                        rewrite: REWRITES[number % 5],
                        readings: readings(number / 5),
                        is_going: number.is_multiple_of(17),
                    });
                }
            }
        }
    }
    write(&app, &rows).await;
    let all = app.get(&key, &format!("/api/documents/{BASE}")).await;
    let all = all.expect(200);
    let all = all["documents"].as_array().unwrap();
    let by_id: HashMap<&str, &Value> = all
        .iter()
        .map(|document| (document["id"].as_str().unwrap(), document))
        .collect();
    assert_eq!(by_id.len(), rows.len());
    for sort in SORTS {
        let listed = pages(&app, &key, &format!("{DOCUMENTS}?sort={sort}"), "documents").await;
        let order = if ["name", "state"].contains(&sort) {
            "asc"
        } else {
            "desc"
        };
        assert_eq!(ids(&listed), sorted(&listed, sort, order), "{sort}");
        assert_eq!(listed.len(), rows.len());
        if sort != "price" {
            continue;
        }
        for entry in &listed {
            let document = by_id[entry["id"].as_str().unwrap()];
            for (field, other) in [
                ("state", "status"),
                ("reason", "processing_error"),
                ("warning", "processing_warning"),
                ("text_characters", "digitized_chars"),
                ("final_characters", "rewritten_chars"),
                ("rewrite_input_tokens", "rewrite_input_tokens_total"),
                ("updated_at", "updated_at"),
            ] {
                assert_eq!(entry[field], document[other], "{field}: {document}");
            }
            assert_eq!(entry["spend"]["display"], document["spend_display"]);
            assert_eq!(entry["spend"]["usd"], document["spend_usd"]);
            let waits = ["digitize_status", "rewrite_status", "embedding_status"]
                .iter()
                .any(|step| document[step] == "blocked");
            let queued = ["digitize_status", "rewrite_status", "embedding_status"]
                .iter()
                .any(|step| document[step] == "queued" || document[step] == "running");
            assert_eq!(entry["queued_at"].is_string(), waits && !queued, "{entry}");
        }
    }
    // The states that the database filters by are those that are told.
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for document in all {
        *states
            .entry(document["status"].as_str().unwrap())
            .or_default() += 1;
    }
    assert_eq!(states.len(), 10, "{states:?}");
    for (state, count) in &states {
        let path = format!("{DOCUMENTS}?state={state}&limit=1");
        assert_eq!(
            app.get(&key, &path).await.expect(200)["total"],
            json!(count),
            "{state}"
        );
    }
    let first = app
        .get(&key, &format!("{DOCUMENTS}?limit=1"))
        .await
        .expect(200);
    let sums = &first["sums"];
    let sum = |field: &str| -> i64 { all.iter().filter_map(|it| it[field].as_i64()).sum() };
    assert_eq!(sums["text_characters"], sum("digitized_chars"));
    let spent: i64 = all
        .iter()
        .filter(|it| it["spend_usd"].is_string())
        .map(|it| units(&it["spend_usd"]))
        .sum();
    assert_eq!(units(&sums["spend"]["usd"]), spent);
    assert_eq!(sums["spend"]["kind"], "at_least");
    let incomplete = all.iter().filter(|it| {
        let display = it["spend_display"].as_str().unwrap();
        display == "n/a" || display.starts_with('≥')
    });
    assert_eq!(
        sums["spend"]["incomplete_documents"],
        json!(incomplete.count())
    );
    let sizes: usize = rows
        .iter()
        .map(|row| row.contents.first().map_or(0, |(_, bytes, _)| *bytes))
        .sum();
    assert_eq!(sums["size_bytes"], json!(sizes));
});

/// Documents with ties in everything that lists are sorted by.
pub(super) fn tied() -> Vec<Row> {
    let row = |number: usize| Row {
        number,
        folder: if number.is_multiple_of(3) {
            "more"
        } else {
            "texts"
        },
        name: ["Äpfel", "äpfel", "Birne", "birne 2", "100%"][number % 5].to_owned(),
        steps: [["done", "none", "none"], ["failed", "none", "none"]][number % 2],
        contents: vec![("original", 100 * (number % 3), 0)],
        rewrite: REWRITES[number % 5],
        readings: readings(number),
        is_going: false,
    };
    (0..23).map(row).collect()
}

on_each_database!(pages_join_without_gap_or_repetition, |database| {
    let app = start(&database).await;
    let key = furnished(&app).await.key;
    let more = fields(&[("name", "more")]);
    post(&app, &key, "/api/folders/acme/manual", more)
        .await
        .expect(201);
    write(&app, &tied()).await;
    // A server folds what databases do not.
    let unfolded = "SELECT COUNT(*) FROM knowledge_documents WHERE sort_name = ''";
    assert_eq!(
        app.state.store.db().fetch_count(unfolded).await.unwrap(),
        10
    );
    app.start_background(&CAPABILITIES).await;
    eventually("names are folded", async || {
        app.state.store.db().fetch_count(unfolded).await.unwrap() == 0
    })
    .await;
    for (filter, count) in [
        ("", 23),
        ("&folder=more", 8),
        ("&state=failed", 11),
        ("&q=%C3%84P", 10),
    ] {
        for sort in SORTS {
            for order in ["asc", "desc"] {
                let path = format!("{DOCUMENTS}?sort={sort}&order={order}{filter}");
                let whole = app.get(&key, &path).await.expect(200);
                assert_eq!(whole["total"], count, "{path}");
                let whole = whole["documents"].as_array().unwrap().clone();
                assert_eq!(whole.len(), count, "{path}");
                assert_eq!(ids(&whole), sorted(&whole, sort, order), "{path}");
                let limit = if filter.is_empty() { 2 } else { 3 };
                let paged = pages(&app, &key, &format!("{path}&limit={limit}"), "documents").await;
                assert_eq!(paged, whole, "{path}");
            }
        }
    }
});

on_each_database!(names_are_found_by_what_they_contain, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let mut made = Vec::new();
    for name in [
        "100%",
        "a_b",
        "a\\b",
        "Äpfel",
        "äpfel 2",
        "Plain",
        "ΟΔΟΣ",
        "A\u{308}hre",
    ] {
        let form = fields(&[("name", name), ("folder", "texts"), ("type", "file")]);
        let path = format!("/api/documents/{BASE}/empty");
        let document = post(&app, key, &path, form).await.expect(201);
        made.push(document["id"].as_str().unwrap().to_owned());
    }
    let found = async |q: &str| {
        let path = format!("{DOCUMENTS}?q={q}");
        let page = app.get(key, &path).await.expect(200);
        let names = page["documents"].as_array().unwrap().iter();
        let names = names.map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    for (q, names) in [
        ("%25", vec!["100%"]),
        ("_", vec!["a_b"]),
        ("%5C", vec!["a\\b"]),
        ("%C3%84", vec!["A\u{308}hre", "Äpfel", "äpfel 2"]),
        ("%C3%A4PF", vec!["Äpfel", "äpfel 2"]),
        ("A%CC%88P", vec!["Äpfel", "äpfel 2"]),
        ("%CE%B4%CE%BF%CF%82", vec!["ΟΔΟΣ"]),
        ("%CE%B4%CE%BF%CF%83", vec!["ΟΔΟΣ"]),
        ("PLAIN", vec!["Plain"]),
        ("none", vec![]),
    ] {
        assert_eq!(found(q).await, names, "{q}");
    }
    // Also once a name has changed in nothing but case.
    let path = format!("/api/documents/{BASE}/{}/name", made[4]);
    for name in ["ÄPFEL 2", "äpfel 2", "Äpfel 2", "Apfel", "Ängste", "ÄNGSTE"] {
        put(&app, key, &path, &[("name", name)]).await.expect(200);
        let sql = format!(
            "SELECT sort_name FROM knowledge_documents WHERE id = '{}'",
            made[4]
        );
        assert_eq!(scalar(&app, sql).await, name.to_lowercase(), "{name}");
    }
    // A character that becomes three of four bytes, as long as names are: the most that an index of names has to take.
    let longest = "\u{1d160}".repeat(200);
    put(&app, key, &path, &[("name", &longest)])
        .await
        .expect(200);
    for (query, field) in [
        ("q=", "q"),
        (&format!("q={}", "x".repeat(201)), "q"),
        ("q=%00", "q"),
        ("sort=colour", "sort"),
        ("order=up", "order"),
        ("state=ready,fine", "state"),
        ("limit=101", "limit"),
        ("name=x", "name"),
        ("cursor=x", "cursor"),
        ("sort=price&cursor=price.asc:0-0:5", "cursor"),
        ("sort=price&cursor=price.desc:0-0:x", "cursor"),
        ("cursor=name.asc:0-0:%00", "cursor"),
    ] {
        let refused = app
            .get(key, &format!("{DOCUMENTS}?{query}"))
            .await
            .expect(400);
        assert_eq!(refused["field"], field, "{query}: {refused}");
    }
    app.get(key, &format!("{DOCUMENTS}?folder=none"))
        .await
        .expect(404);
    let other = app.partner("other").await;
    for path in [
        "document-list/acme/manual",
        "folder-list/acme/manual",
        "kb-list/acme",
    ] {
        app.get(&other.key, &format!("/api/{path}"))
            .await
            .expect(403);
    }
    for path in ["document-list/other/manual", "folder-list/other/manual"] {
        app.get(&other.key, &format!("/api/{path}"))
            .await
            .expect(404);
        app.get(
            key,
            &format!(
                "/api/{}",
                path.replace("other", "acme").replace("manual", "none")
            ),
        )
        .await
        .expect(404);
    }
    let calls = app.key("acme", json!({"name": "calls", "scopes": ["calls"]}));
    let calls = calls.await["api_key"].as_str().unwrap().to_owned();
    for path in [
        "document-list/acme/manual",
        "folder-list/acme/manual",
        "kb-list/acme",
    ] {
        app.get(&calls, &format!("/api/{path}")).await.expect(403);
    }
    let none = app.get(&other.key, "/api/kb-list/other").await.expect(200);
    assert_eq!(
        (&none["total"], &none["knowledge_bases"]),
        (&json!(0), &json!([]))
    );
});
