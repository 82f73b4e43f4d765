//! What analyses do on both databases, through their routes and by their jobs.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod lists;
mod retries;

use std::ops::Deref;

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, AccountsCapability};
use colloquy_analyses::{Analyses, AnalysesCapability};
use colloquy_http::Edge;
use colloquy_kernel::{Capability, Kernel};
use colloquy_store::Executor as _;
use serde_json::json;
use support::{TestDatabase, on_each_database};
use test_routes::{
    ADMIN_KEY, Doubles, TestRoutes, TestRoutesBuilder,
    analyses::{analyzed, conversation},
    quick,
};

/// The state of the capabilities.
#[derive(Clone)]
struct Place(Analyses);

impl Deref for Place {
    type Target = Analyses;

    fn deref(&self) -> &Analyses {
        &self.0
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.0.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.0)
    }
}

impl FromRef<Place> for Analyses {
    fn from_ref(place: &Place) -> Self {
        place.0.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 2] = [&AccountsCapability, &AnalysesCapability];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start_by(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let place = async |accounts: Accounts, _: Edge| {
        let providers = Doubles::default().providers(&accounts.config);
        Place(Analyses::new(accounts, providers))
    };
    let app = builder.start(|_| Vec::new(), place, &CAPABILITIES).await;
    app.start_background(&CAPABILITIES).await;
    app
}

on_each_database!(the_embedded_model_finds_what_is_stated, |database| {
    let builder = builder(&database)
        .config(|config| config.analyses.model = Some("builtin/extractive".to_owned()));
    let app = start_by(builder).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let read = analyzed(&app, &acme.key, conversation()).await;
    let expected = json!({
        "profile": {"name": "Ada", "city": "Berlin", "job": "clerk", "pet": null},
        "feedback": {"mood": null, "stars": null},
    });
    assert_eq!(
        (&read["state"], &read["output"]),
        (&json!("completed"), &expected),
        "{read}"
    );
    let created = read["created_at"].as_str().unwrap();
    assert!(created.ends_with('Z') && created.contains('T'), "{created}");
    assert!(read["server_runtime"].is_u64());
    let path = read["id"].as_str().unwrap();
    assert!(path.starts_with("/v2/dialog_analyses/"));
    app.get(&other.key, path).await.expect(404);
    // What was asked does not stay.
    let sql = "SELECT COUNT(*) FROM dialog_analyses WHERE input IS NOT NULL";
    assert_eq!(app.state.store.db().fetch_count(sql).await.unwrap(), 0);
    // Nor does anything once its partner is gone.
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    let sql = "SELECT COUNT(*) FROM dialog_analyses";
    assert_eq!(app.state.store.db().fetch_count(sql).await.unwrap(), 0);
});
