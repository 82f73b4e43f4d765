//! What transcripts do on both databases, through their routes.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod lists;
mod retries;
mod storage;

use std::{ops::Deref, sync::Arc, time::Duration};

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, AccountsCapability};
use colloquy_blobs::{Blobs, BlobsCapability};
use colloquy_fetch::Fetcher;
use colloquy_http::Edge;
use colloquy_kernel::{Base, Capability, Kernel};
use colloquy_providers::Providers;
use colloquy_sandbox::Sandbox;
use colloquy_store::Executor as _;
use colloquy_transcripts::{TEXTS, Transcripts, TranscriptsCapability};
use serde_json::json;
use support::{TestDatabase, on_each_database};
use test_routes::{
    ADMIN_KEY, Doubles, TestRoutes, TestRoutesBuilder, quick,
    storage::{counted, recount_texts},
    transcripts::{PATH, audio, ended, is_over, post_form, recording},
};

/// The state of the capabilities.
#[derive(Clone)]
struct Place {
    transcripts: Transcripts,
    blobs: Blobs,
}

impl Place {
    fn open(accounts: Accounts, providers: Providers) -> Self {
        let blobs = Blobs::open(Base::clone(&accounts)).unwrap();
        let fetcher = Fetcher::new(&accounts.config.fetch).unwrap();
        let sandbox = Arc::new(Sandbox::new(&accounts.config.sandbox));
        Self {
            transcripts: Transcripts::new(accounts, blobs.clone(), sandbox, providers, fetcher),
            blobs,
        }
    }
}

impl Deref for Place {
    type Target = Transcripts;

    fn deref(&self) -> &Transcripts {
        &self.transcripts
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.transcripts.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.transcripts)
    }
}

impl FromRef<Place> for Blobs {
    fn from_ref(place: &Place) -> Self {
        place.blobs.clone()
    }
}

impl FromRef<Place> for Transcripts {
    fn from_ref(place: &Place) -> Self {
        place.transcripts.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 3] = [
    &AccountsCapability,
    &BlobsCapability,
    &TranscriptsCapability,
];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start(database: &TestDatabase) -> TestRoutes<Place> {
    start_by(builder(database)).await
}

async fn start_by(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let providers = Doubles::default().providers(builder.settings());
    start_with(builder, providers).await
}

/// Starts with providers of the test.
async fn start_with(builder: TestRoutesBuilder, providers: Providers) -> TestRoutes<Place> {
    let place = async |accounts: Accounts, _: Edge| Place::open(accounts, providers);
    let app = builder.start(|_| Vec::new(), place, &CAPABILITIES).await;
    app.start_background(&CAPABILITIES).await;
    app
}

#[tokio::test]
async fn the_fields_of_a_form_are_together_no_longer_than_a_body() {
    let app = start_by(builder(&TestDatabase::sqlite())).await;
    let acme = app.partner("acme").await;
    let long = "x".repeat(150 * 1024);
    let form = || audio("a.wav", recording()).text("one", long.clone());
    let taken = post_form(&app, &acme.key, form()).await;
    taken.expect(200);
    let refused = post_form(&app, &acme.key, form().text("other", long.clone())).await;
    let refused = refused.expect(422);
    assert_eq!(
        refused["errors"]["other"],
        json!(["has more than 108544 bytes"])
    );
}

on_each_database!(a_recording_is_written_down, |database| {
    let app = start_by(builder(&database).with_decoder()).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    // The doubles hear nothing; what counts here is the way of a transcript through either database.
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let made = post_form(&app, &acme.key, audio("a.wav", recording()))
        .await
        .expect(200);
    let read = ended(&app, &acme.key, &made).await;
    assert!(
        read["status"] == "completed" || read["status"] == "error",
        "{read}"
    );
    let path = made["id"].as_str().unwrap();
    assert!(path.starts_with("/v2/transcript/"));
    app.get(&other.key, path).await.expect(404);
    let id = path.rsplit('/').next().unwrap();
    app.get(&acme.key, &format!("{PATH}/{id}"))
        .await
        .expect(200);
    app.get(&acme.key, &format!("{PATH}/not-one"))
        .await
        .expect(404);
});

#[tokio::test]
async fn a_recording_that_finds_no_decoder_waits_a_day() {
    let builder = builder(&TestDatabase::sqlite())
        .config(|config| config.sandbox.program = Some("/nowhere".into()));
    let app = start_by(builder).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    let acme = app.partner("acme").await;
    let made = post_form(&app, &acme.key, audio("a.wav", recording()))
        .await
        .expect(200);
    let path = made["id"].as_str().unwrap();
    // More often than a recording is tried that fails by itself.
    let often = std::iter::repeat_n(Duration::from_secs(120), 20);
    for later in often.chain([Duration::from_secs(22 * 3_600)]) {
        app.run_due_jobs().await;
        let waiting = app.get(&acme.key, path).await.expect(200);
        assert!(!is_over(&waiting), "{waiting}");
        app.advance(later);
    }
    app.run_due_jobs().await;
    let waiting = app.get(&acme.key, path).await.expect(200);
    assert!(!is_over(&waiting), "{waiting}");
    app.advance(Duration::from_secs(2 * 3_600));
    app.run_due_jobs().await;
    let read = app.get(&acme.key, path).await.expect(200);
    assert_eq!(read["status"], "error", "{read}");
}

on_each_database!(
    secret_keys_of_the_partner_delete_its_transcripts_and_no_others_do,
    |database| {
        let app = start(&database).await;
        let (acme, other) = (app.partner("acme").await, app.partner("other").await);
        let quota = app.quota(&acme, json!({"kinds": ["transcript"]})).await;
        let mut made = Vec::new();
        for scope in ["calls", "transcripts"] {
            let key = app.key("acme", json!({"scopes": [scope]})).await;
            made.push(key["api_key"].as_str().unwrap().to_owned());
        }
        let [unscoped, scoped] = &made[..] else {
            unreachable!()
        };
        let body = json!({"audio_url": "https://example.com/a.mp3"});
        let made = app.post(&quota.key, PATH, body).await.expect(200);
        let path = made["id"].as_str().unwrap();
        let open = counted(&app).await;
        let set = async |change: &str| {
            let sql = format!("UPDATE transcripts SET {change}");
            app.state.store.db().execute(sql).await.unwrap();
        };
        for status in ["queued", "processing"] {
            set(&format!("status = '{status}'")).await;
            let refused = app.delete(&acme.key, path).await.expect(409);
            let told = refused["error"].as_str().unwrap();
            assert!(told.contains("has not ended"), "{told}");
            let read = app.get(&acme.key, path).await.expect(200);
            assert_eq!(read["status"], status);
        }
        assert_eq!(counted(&app).await, open);
        set("status = 'error', error = 'x', ended_at = created_at").await;
        recount_texts(&app, TEXTS).await.unwrap();
        for (key, status) in [
            (quota.key.as_str(), 403),
            (unscoped.as_str(), 403),
            (other.key.as_str(), 404),
            ("", 401),
        ] {
            let refused = app.delete(key, path).await.expect(status);
            assert!(refused["error"].is_string(), "{refused}");
            app.get(&acme.key, path).await.expect(200);
        }
        let unknown = format!("{PATH}/01890c5e-0000-7000-8000-000000000000");
        for path in [unknown, format!("{PATH}/not-one")] {
            let refused = app.delete(scoped, &path).await.expect(404);
            assert_eq!(refused["error"], "Transcript not found", "{refused}");
        }
        app.delete(scoped, path).await.expect(204);
        app.delete(scoped, path).await.expect(404);
        counted(&app).await;
    }
);
