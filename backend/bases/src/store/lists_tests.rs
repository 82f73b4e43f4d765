//! What SQLite reads for lists.

use super::*;
use crate::store::{
    documents::DOCUMENT_COUNT,
    listed_bases::base_figure_rows,
    listed_folders::folder_figure_rows,
    plans::{migrated, plan},
    statistics::{DOCUMENTS, DRAFTS},
    usage::CHARACTERS,
};

const BASE: &str = "SEARCH d USING COVERING INDEX knowledge_documents_listed (base_id=?)";
const FOLDER: &str =
    "SEARCH d USING COVERING INDEX knowledge_documents_listed (base_id=? AND folder_id=?)";

#[tokio::test]
async fn lists_are_sorted_and_summed_by_their_index_alone() {
    let (store, _folder) = migrated().await;
    for (folder, search) in [(None, BASE), (Some("f".to_owned()), FOLDER)] {
        let filter = DocumentFilter {
            base: "b".to_owned(),
            name: Some("a".to_owned()),
            folder,
            states: vec![DocumentStatus::Failed, DocumentStatus::Ready],
        };
        let sums = filter.query(Dialect::Sqlite, &SUMS);
        assert_eq!(plan(&store, &sums.sql, sums.values).await, [search]);
        for sort in [
            SortKey::Name,
            SortKey::Price,
            SortKey::Size,
            SortKey::Tokens,
            SortKey::Changed,
            SortKey::State,
        ] {
            for after in [None, Some((Value::from("x"), "y".to_owned()))] {
                let key = document_key(sort);
                let mut query = filter.query(Dialect::Sqlite, &format!("d.id, {key} AS key"));
                let keyset = Keyset { after, limit: 101 };
                keyset.complete(
                    &mut query.sql,
                    &mut query.values,
                    (key, "d.id"),
                    Order::Ascending,
                );
                let steps = plan(&store, &query.sql, query.values).await;
                assert!(
                    steps[0].starts_with(search.trim_end_matches(')')),
                    "{sort:?}: {steps:?}"
                );
            }
        }
    }
    // A folder is read in the order of names, from the cursor on.
    let filter = DocumentFilter {
        base: "b".to_owned(),
        name: None,
        folder: Some("f".to_owned()),
        states: Vec::new(),
    };
    let key = document_key(SortKey::Name);
    let mut query = filter.query(Dialect::Sqlite, &format!("d.id, {key} AS key"));
    let keyset = Keyset {
        after: Some(("x".into(), "y".to_owned())),
        limit: 101,
    };
    keyset.complete(
        &mut query.sql,
        &mut query.values,
        (key, "d.id"),
        Order::Ascending,
    );
    let steps = plan(&store, &query.sql, query.values).await;
    let search = "SEARCH d USING COVERING INDEX knowledge_documents_listed (base_id=? AND folder_id=? AND sort_name>?)";
    assert_eq!(steps, [search]);

    // The jobs of each document are found by it.
    let steps = plan(
        &store,
        &format!("{}('a', 'b')", document_rows()),
        Vec::new(),
    )
    .await;
    let jobs = steps.iter().filter(|step| step.starts_with("SEARCH w"));
    let jobs: Vec<&String> = jobs.collect();
    assert_eq!(jobs.len(), 2, "{steps:?}");
    for step in jobs {
        assert_eq!(
            step,
            "SEARCH w USING INDEX work_dedup (kind=? AND dedup_key=?)"
        );
    }

    // Figures are summed by the index of lists, and states counted by that of unfinished documents.
    for (figures, values, searched) in [
        (base_figure_rows("$1"), vec!["b".into()], "(base_id=?)"),
        (
            folder_figure_rows("$2"),
            vec!["b".into(), "f".into()],
            "(base_id=? AND folder_id=?)",
        ),
    ] {
        let steps = plan(&store, &figures, values).await;
        for index in [
            "COVERING INDEX knowledge_documents_listed",
            "INDEX knowledge_documents_unfinished",
        ] {
            let search = format!("SEARCH d USING {index} {searched}");
            assert!(steps.contains(&search), "{search}: {steps:?}");
        }
    }

    // Other figures of whole bases are read from the index of lists, too.
    let steps = plan(&store, CHARACTERS, vec!["b".into(), "".into()]).await;
    assert_eq!(steps[0], BASE, "{steps:?}");
    let steps = plan(&store, DOCUMENTS, vec!["b".into()]).await;
    assert_eq!(steps, [BASE]);
    let steps = plan(&store, DRAFTS, vec!["b".into()]).await;
    assert_eq!(
        steps[0], "SCAN c USING COVERING INDEX knowledge_contents_drafts",
        "{steps:?}"
    );
    let steps = plan(&store, DOCUMENT_COUNT, vec!["b".into()]).await;
    assert!(steps[0].contains("knowledge_documents_base "), "{steps:?}");
}
