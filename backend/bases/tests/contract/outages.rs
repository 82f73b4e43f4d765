//! What is left of work that was given up.

use colloquy_bases::Embed;
use colloquy_kernel::jobs::{GivenUp, Job as _, Run};

use super::*;

on_each_database!(
    embedding_that_is_given_up_fails_only_documents_that_wait_for_it,
    |database| {
        let app = start_working(builder(&database)).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let id = add(&app, key, "Zoo", "The zoo opens at nine.").await;
        settled(&app, key).await;
        let db = app.state.store.db();
        let given_up = "failed: the document could not be embedded; it was tried several times";
        for (step, noted, left) in [
            ("done", "", "done: "),
            ("none", "", "none: "),
            ("running", "", given_up),
            ("running", "answered 503", "failed: answered 503"),
            ("queued", "is asked again", given_up),
        ] {
            let sql = format!(
                "UPDATE knowledge_documents SET embedding = '{step}', embedding_error = NULLIF('{noted}', '') WHERE id = '{id}'"
            );
            db.execute(sql).await.unwrap();
            let job = Embed {
                document: id.clone(),
            };
            let run = Run {
                id: String::new(),
                fence: 0,
                attempt: 6,
            };
            let told = job.give_up(app.state.bases.clone(), run, GivenUp::Failed);
            told.await.unwrap();
            let sql = format!(
                "SELECT embedding || ': ' || COALESCE(embedding_error, '') FROM knowledge_documents WHERE id = '{id}'"
            );
            let read: Option<String> = db.fetch_scalar(sql).await.unwrap();
            assert_eq!(read.as_deref(), Some(left), "{step} {noted}");
        }
    }
);
