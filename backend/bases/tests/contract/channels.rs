//! Folders that follow channels, which a program looks through that prints what yt-dlp prints.

use colloquy_bases::Discover;
use colloquy_kernel::jobs::{GivenUp, Job as _, Run};
use test_routes::videos::Platform;

use super::*;

const CHANNEL: &str = "/api/folders/acme/manual/zoo/channel";
const SYNC: &str = "/api/folders/acme/manual/zoo/sync";
const DAY: Duration = Duration::from_secs(24 * 3_600);

struct Zoo {
    app: App,
    key: String,
    platform: Platform,
}

impl Zoo {
    async fn start(database: &TestDatabase) -> Self {
        let platform = Platform::empty();
        let program = platform.program();
        let builder = builder(database).config(|config| {
            config.knowledge.yt_dlp = Some(program);
            config.sandbox.readable = vec![platform.folder().to_owned()];
            config.knowledge.discovery_usd = "0.01".parse().unwrap();
        });
        let app = start_working(builder).await;
        let key = furnished(&app).await.key;
        Self { app, key, platform }
    }

    async fn follow(&self, name: &str, channel_url: &str) -> Answer {
        let form = fields(&[
            ("name", name),
            ("type", "video_channel"),
            ("channel_url", channel_url),
        ]);
        post(&self.app, &self.key, "/api/folders/acme/manual", form).await
    }

    async fn data(&self) -> Value {
        let path = format!("/api/kb-data/{BASE}");
        self.app.get(&self.key, &path).await.expect(200)
    }

    /// What is told of the channel of a folder.
    async fn details(&self, name: &str) -> Value {
        let data = self.data().await;
        let details = data["folder_details"].as_array().unwrap().iter();
        let mut named = details.filter(|details| details["name"] == name);
        named.next().cloned().unwrap_or(Value::Null)
    }

    async fn becomes(&self, name: &str, status: &str) -> Value {
        let what = format!("the channel of {name} becomes {status}");
        eventually(&what, async || self.details(name).await["status"] == status).await;
        self.details(name).await
    }

    /// The names of the documents of a folder, oldest first.
    async fn documents(&self, folder: &str) -> Vec<String> {
        let data = self.data().await;
        let documents = data["documents"].as_array().unwrap().iter();
        let of_folder = documents.filter(|document| document["folder"] == folder);
        of_folder
            .map(|document| document["name"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn imported(&self, count: usize) {
        let what = format!("{count} videos are documents");
        eventually(&what, async || self.documents("zoo").await.len() == count).await;
    }

    async fn patch(&self, path: &str, body: Value) -> Answer {
        let request = self.app.request(Method::PATCH, path);
        send(request.bearer_auth(&self.key).json(&body)).await
    }

    /// How many scans were charged.
    async fn scans(&self) -> u64 {
        let data = self.data().await;
        let dollars = data["budget"]["dollars"]["consumed"].as_str().unwrap();
        (dollars.parse::<f64>().unwrap() * 100.0).round() as u64
    }

    async fn scanned(&self, count: u64) {
        let what = format!("{count} scans are charged");
        eventually(&what, async || self.scans().await == count).await;
    }

    /// How many bytes the partner stores, which are those that its rows have.
    async fn used(&self) -> u64 {
        let recounted = recount_texts(&self.app, TEXTS).await;
        assert_eq!(recounted.unwrap(), 0);
        let listed = self.app.get(&self.key, "/api/partners").await.expect(200);
        listed[0]["storage"]["used_bytes"].as_u64().unwrap()
    }

    /// Waits until so many videos are documents that nobody works on: the platform shows none of them.
    async fn refused(&self, count: usize) {
        self.imported(count).await;
        eventually("the videos are refused", async || {
            let data = self.data().await;
            let mut documents = data["documents"].as_array().unwrap().iter();
            documents.all(|document| document["status"] == "failed")
        })
        .await;
    }

    async fn sync(&self) -> Answer {
        self.app.post(&self.key, SYNC, json!({})).await
    }
}

rule!(
    new_videos_are_imported_newest_first_and_each_once,
    |zoo: Zoo| {
        // One of them is in the base already, under another form of its address.
        let form = fields(&[
            ("type", "url"),
            ("folder", "texts"),
            ("url", "https://youtu.be/v2?t=3"),
        ]);
        let path = format!("/api/documents/{BASE}");
        let made = post(&zoo.app, &zoo.key, &path, form).await.expect(201);
        let known = made["id"].clone();
        zoo.platform.has(
            "@zoo/videos",
            "UCzoo",
            &[("v3", None), ("v2", None), ("v1", Some("was_live"))],
        );
        zoo.platform
            .has("@zoo/streams", "UCzoo", &[("live", Some("is_live"))]);
        let made = zoo
            .follow("zoo", "https://www.youtube.com/@Zoo")
            .await
            .expect(201);
        assert_eq!(made["type"], "video_channel");
        let details = zoo.becomes("zoo", "synced").await;
        assert_eq!(details["channel_id"], "UCzoo");
        assert_eq!(details["channel_url"], "https://www.youtube.com/@Zoo");
        zoo.imported(2).await;
        assert_eq!(zoo.documents("zoo").await, ["Video v3", "Video v1"]);
        let details = zoo.details("zoo").await;
        let counts = |imported: u64, deferred: u64, suppressed: u64| json!({"pending": 0, "deferred": deferred, "imported": imported, "duplicate": 1, "suppressed": suppressed});
        assert_eq!(details["counts"], counts(2, 1, 0));
        assert_eq!(details["duplicate_document_ids"], json!([known]));
        assert!(details["last_sync_at"].is_string() && details["next_sync_at"].is_string());

        // Once a day, by the name that the platform has for it: what is new, and what is not live any more.
        let videos = [("v4", None), ("v3", None), ("v2", None)];
        zoo.platform.has("channel/UCzoo/videos", "UCzoo", &videos);
        let streams = [("live", Some("was_live"))];
        zoo.platform.has("channel/UCzoo/streams", "UCzoo", &streams);
        zoo.app.run_due_jobs().await;
        assert_eq!(zoo.scans().await, 1);
        zoo.app.advance(DAY + Duration::from_secs(1_900));
        zoo.imported(4).await;
        let documents = zoo.documents("zoo").await;
        assert!(documents[2..].contains(&"Video v4".to_owned()));
        assert!(documents[2..].contains(&"Video live".to_owned()));

        // What somebody deleted stays away.
        let data = zoo.data().await;
        let all = data["documents"].as_array().unwrap();
        let v3 = all.iter().find(|it| it["name"] == "Video v3").unwrap();
        let path = format!("/api/documents/{BASE}/{}", v3["id"].as_str().unwrap());
        zoo.app.delete(&zoo.key, &path).await.expect(200);
        assert_eq!(zoo.sync().await.expect(200)["status"], "pending");
        zoo.scanned(3).await;
        eventually("it is suppressed", async || {
            zoo.details("zoo").await["counts"] == counts(3, 0, 1)
        })
        .await;
        assert_eq!(zoo.documents("zoo").await.len(), 3);
    }
);

rule!(a_channel_is_paused_and_goes_on, |zoo: Zoo| {
    zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
    zoo.platform
        .has("channel/UCzoo/videos", "UCzoo", &[("v1", None)]);
    zoo.follow("zoo", "@zoo").await.expect(201);
    zoo.becomes("zoo", "synced").await;
    let paused = zoo
        .patch(CHANNEL, json!({"enabled": false}))
        .await
        .expect(200);
    assert_eq!(paused["status"], "paused");
    assert_eq!(paused["enabled"], false);
    zoo.sync().await.expect(409);
    zoo.app.advance(2 * DAY);
    zoo.app.run_due_jobs().await;
    assert_eq!(zoo.scans().await, 1);
    let body = json!({"enabled": true, "model_tier": "economy"});
    let resumed = zoo.patch(CHANNEL, body).await.expect(200);
    assert_eq!(resumed["model_tier"], "economy");
    zoo.becomes("zoo", "synced").await;
    assert_eq!(zoo.scans().await, 2);
    for (body, field) in [
        (json!({"channel_url": "@other"}), "channel_url"),
        (json!({"model_tier": "best"}), "model_tier"),
    ] {
        let answer = zoo.patch(CHANNEL, body).await.expect(400);
        assert!(answer.to_string().contains(field), "{answer}");
    }
    let regular = "/api/folders/acme/manual/texts/channel";
    zoo.patch(regular, json!({"enabled": false}))
        .await
        .expect(409);
});

rule!(an_alias_is_followed_once_and_so_is_a_channel, |zoo: Zoo| {
    for list in ["@zoo/videos", "c/zoo/videos"] {
        zoo.platform.has(list, "UCzoo", &[("v1", None)]);
    }
    zoo.follow("zoo", "@zoo").await.expect(201);
    zoo.becomes("zoo", "synced").await;
    zoo.follow("again", "https://youtube.com/@ZOO/videos")
        .await
        .expect(409);
    // Another address of the same channel is found out when it is looked through.
    let made = zoo
        .follow("other", "https://youtube.com/c/zoo")
        .await
        .expect(201);
    let details = zoo.becomes("other", "duplicate").await;
    assert_eq!(details["duplicate_source"], zoo.details("zoo").await["id"]);
    assert_eq!(details["id"], made["id"]);
    assert_eq!(zoo.documents("other").await.len(), 0);
    for wrong in [
        "",
        "zoo",
        "https://example.com/@zoo",
        "https://youtube.com/watch?v=1",
    ] {
        let answer = zoo.follow("wrong", wrong).await.expect(400);
        assert!(answer.to_string().contains("channel_url"), "{answer}");
    }
    // The folder gone, its channel may be followed again.
    zoo.app
        .delete(&zoo.key, "/api/folders/acme/manual/zoo")
        .await
        .expect(200);
    eventually("the folder is gone", async || {
        zoo.details("zoo").await == Value::Null
    })
    .await;
    zoo.follow("zoo", "@zoo").await.expect(201);
});

rule!(
    an_address_that_leads_elsewhere_pauses_before_anything_is_imported,
    |zoo: Zoo| {
        zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
        zoo.follow("zoo", "@zoo").await.expect(201);
        zoo.becomes("zoo", "synced").await;
        zoo.imported(1).await;
        zoo.platform
            .has("channel/UCzoo/videos", "UCother", &[("o1", None)]);
        zoo.sync().await.expect(200);
        let details = zoo.becomes("zoo", "paused").await;
        assert_eq!(details["enabled"], false);
        assert_eq!(details["channel_id"], "UCzoo");
        assert!(
            details["last_error"]
                .as_str()
                .unwrap()
                .contains("another channel")
        );
        assert_eq!(zoo.documents("zoo").await, ["Video v1"]);
    }
);

rule!(a_base_without_room_has_nothing_discovered, |zoo: Zoo| {
    let limits = "/api/knowledgebases/acme/manual/limits";
    zoo.patch(limits, json!({"dollar_limit_usd": "0.005"}))
        .await
        .expect(200);
    zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
    zoo.platform
        .has("channel/UCzoo/videos", "UCzoo", &[("v1", None)]);
    zoo.follow("zoo", "@zoo").await.expect(201);
    assert_eq!(zoo.details("zoo").await["status"], "budget_blocked");
    let answer = zoo.sync().await.expect(200);
    assert_eq!(answer["status"], "budget_blocked");
    assert_eq!(answer["budget"]["dollars"]["remaining"], "0.005");
    assert_eq!(zoo.scans().await, 0);
    zoo.patch(limits, json!({"dollar_limit_usd": "0.015"}))
        .await
        .expect(200);
    zoo.becomes("zoo", "synced").await;
    zoo.imported(1).await;
    // The next one finds no room any more.
    zoo.app.advance(DAY + Duration::from_secs(1_900));
    zoo.becomes("zoo", "budget_blocked").await;
    zoo.patch(limits, json!({"dollar_limit_usd": null}))
        .await
        .expect(200);
    zoo.becomes("zoo", "synced").await;
});

rule!(
    what_cannot_be_looked_through_says_why_and_is_tried_again,
    |zoo: Zoo| {
        zoo.platform.is_down(Some("Sign in to confirm"));
        zoo.follow("zoo", "@zoo").await.expect(201);
        let details = zoo.becomes("zoo", "error").await;
        assert!(
            details["last_error"].as_str().unwrap().contains("Sign in"),
            "{details}"
        );
        assert_eq!(zoo.data().await["budget"]["dollars"]["consumed"], "0");
        zoo.platform.is_down(None);
        zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
        zoo.platform.write("@zoo/shorts", "<html>");
        zoo.app.advance(Duration::from_secs(3_600 + 1_900));
        let details = zoo.becomes("zoo", "incomplete").await;
        assert!(
            details["last_error"].as_str().unwrap().contains("shorts"),
            "{details}"
        );
        zoo.imported(1).await;
    }
);

rule!(
    a_platform_that_cannot_be_reached_is_told_between_the_attempts,
    |zoo: Zoo| {
        zoo.platform.is_down(Some("Connection refused"));
        zoo.follow("zoo", "@zoo").await.expect(201);
        let told = async || {
            let details = zoo.details("zoo").await;
            let reason = details["last_error"].as_str().unwrap_or_default();
            details["status"] == "syncing" && reason.contains("could not be reached")
        };
        eventually("the reason is told", told).await;
        // The next attempt has its time a moment after the reason is told: a clock that moves before would not reach it.
        let db = zoo.app.state.store.db();
        let waits = "SELECT COUNT(*) FROM work WHERE kind = 'bases.discover' AND state = 'queued'";
        eventually("the next attempt has its time", async || {
            db.fetch_count(waits).await.unwrap() == 1
        })
        .await;
        zoo.platform.holds();
        zoo.app.advance(Duration::from_secs(20));
        eventually("it is tried again", async || zoo.platform.is_asked()).await;
        assert!(told().await);
        zoo.platform.is_down(None);
        zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
        zoo.platform.lets_go();
        let details = zoo.becomes("zoo", "synced").await;
        assert!(details["last_error"].is_null(), "{details}");
    }
);

rule!(as_many_videos_are_imported_as_have_room, |zoo: Zoo| {
    // The first key, and rows of the base, of two folders, of four videos and of two documents.
    let rows = 1_024 + 3 * 4_096 + 4 * 1_024 + 2 * 8_192;
    zoo.app.limit_storage("acme", rows + 100).await;
    let videos = [("v4", None), ("v3", None), ("v2", None), ("v1", None)];
    zoo.platform.has("@zoo/videos", "UCzoo", &videos);
    zoo.follow("zoo", "@zoo").await.expect(201);
    let details = zoo.becomes("zoo", "incomplete").await;
    let why = details["last_error"].as_str().unwrap();
    assert!(why.contains("storage_bytes"), "{why}");
    assert_eq!(zoo.documents("zoo").await, ["Video v4", "Video v3"]);
    assert_eq!(details["counts"]["pending"], 2, "{details}");
    assert_eq!(zoo.used().await, rows);
});

rule!(videos_count_from_when_they_are_noted, |zoo: Zoo| {
    // The first key counts, too.
    const KEY: u64 = 1_024;
    const FURNITURE: u64 = KEY + 2 * 4_096;
    let videos = [("v3", None), ("v2", None), ("v1", None)];
    for list in ["@zoo/videos", "channel/UCzoo/videos"] {
        zoo.platform.has(list, "UCzoo", &videos);
    }
    // As many as have room are noted.
    let noted = FURNITURE + 4_096 + 2 * 1_024;
    zoo.app.limit_storage("acme", noted + 100).await;
    zoo.follow("zoo", "@zoo").await.expect(201);
    let details = zoo.becomes("zoo", "incomplete").await;
    let why = details["last_error"].as_str().unwrap();
    assert!(why.contains("storage_bytes"), "{why}");
    assert_eq!(details["counts"]["pending"], 2, "{details}");
    assert_eq!(zoo.documents("zoo").await.len(), 0);
    assert_eq!(zoo.used().await, noted);

    // Once there is room, so are the others, each once.
    zoo.app.limit_storage("acme", 1 << 30).await;
    zoo.sync().await.expect(200);
    zoo.becomes("zoo", "synced").await;
    zoo.refused(3).await;
    let all = FURNITURE + 4_096 + 3 * (1_024 + 8_192);
    assert_eq!(zoo.used().await, all);

    // They are released with their folder, and with their base.
    let folder = "/api/folders/acme/manual/zoo";
    zoo.app.delete(&zoo.key, folder).await.expect(200);
    assert_eq!(zoo.used().await, FURNITURE);
    zoo.follow("zoo", "@zoo").await.expect(201);
    zoo.becomes("zoo", "synced").await;
    zoo.refused(3).await;
    assert_eq!(zoo.used().await, all);
    let base = "/api/knowledgebases/acme/manual";
    zoo.app.delete(&zoo.key, base).await.expect(200);
    assert_eq!(zoo.used().await, KEY);
});

/// A process that dies during a scan may have died of something else: two of them cost an hour, not a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_whose_process_died_is_tried_again_within_two_hours() {
    let zoo = Zoo::start(&TestDatabase::sqlite()).await;
    zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
    zoo.platform.has("@zoo/streams", "UCzoo", &[]);
    zoo.follow("zoo", "@zoo").await.expect(201);
    let details = zoo.becomes("zoo", "synced").await;
    let job = Discover {
        folder: details["id"].as_str().unwrap().to_owned(),
    };
    let sql = "UPDATE knowledge_channels SET status = 'syncing'";
    zoo.app.state.store.db().execute(sql).await.unwrap();
    let run = Run {
        id: String::new(),
        fence: 0,
        attempt: 1,
    };
    let bases = zoo.app.state.bases.clone();
    job.give_up(bases, run, GivenUp::Died).await.unwrap();
    let details = zoo.details("zoo").await;
    assert_eq!(details["status"], "error", "{details}");
    let next: jiff::Timestamp = details["next_sync_at"].as_str().unwrap().parse().unwrap();
    let wait = next.duration_since(zoo.app.state.clock.now());
    assert!(wait.as_hours() < 2, "{details}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_was_given_up_by_a_clock_ahead_does_not_wait_for_its_day() {
    let zoo = Zoo::start(&TestDatabase::sqlite()).await;
    let now = zoo.app.state.clock.now().to_string();
    zoo.app.advance(40 * DAY);
    zoo.platform.is_down(Some("Sign in to confirm"));
    zoo.follow("zoo", "@zoo").await.expect(201);
    zoo.becomes("zoo", "error").await;
    let db = zoo.app.state.store.db();
    let failed =
        "UPDATE work SET state = 'failed' WHERE kind = 'bases.discover' AND state = 'queued'";
    let is_failed = async || db.execute(failed).await.unwrap() == 1;
    eventually("its job is given up", is_failed).await;
    zoo.platform.is_down(None);
    zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
    zoo.app.set_clock(&now);
    zoo.becomes("zoo", "synced").await;
}

/// A process that dies between the end of a scan and that of its job has looked through the channel, and is not charged again.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_whose_job_runs_again_is_not_repeated() {
    let zoo = Zoo::start(&TestDatabase::sqlite()).await;
    zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
    zoo.follow("zoo", "@zoo").await.expect(201);
    zoo.becomes("zoo", "synced").await;
    zoo.imported(1).await;
    let db = zoo.app.state.store.db();
    let waits = "UPDATE work SET run_at = run_at WHERE kind = 'bases.discover' AND state = 'queued' AND run_at > 0";
    let waiting = async || db.execute(waits).await.unwrap() == 1;
    eventually("the job waits for the next day", waiting).await;
    let again = "UPDATE work SET run_at = 0 WHERE kind = 'bases.discover'";
    db.execute(again).await.unwrap();
    zoo.app.state.kernel.jobs.wake();
    eventually("the job waits again", waiting).await;
    assert_eq!(zoo.scans().await, 1);
    // Somebody who wants it sooner has it looked through.
    zoo.sync().await.expect(200);
    zoo.scanned(2).await;
}

/// Who wants a channel looked through while that goes on may have published something since.
#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_is_wanted_during_another_one_follows_it() {
    let zoo = Zoo::start(&TestDatabase::sqlite()).await;
    zoo.platform.has("@zoo/videos", "UCzoo", &[("v1", None)]);
    zoo.platform
        .has("channel/UCzoo/videos", "UCzoo", &[("v1", None)]);
    zoo.platform.holds();
    zoo.follow("zoo", "@zoo").await.expect(201);
    zoo.becomes("zoo", "syncing").await;
    zoo.sync().await.expect(200);
    zoo.platform.lets_go();
    zoo.scanned(2).await;
    zoo.becomes("zoo", "synced").await;
    zoo.imported(1).await;
}
