//! A site with what documents may be at an address.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Redirect},
    routing::get,
};
use tokio::{net::TcpListener, task::JoinSet};

use crate::bases::sample;

const PAGE: &str = "<html><head><title>Feeding lions</title></head><body><nav><a href='/'>Home</a><a href='/shop'>Shop</a></nav>\
<article><h1>Feeding lions</h1><p>Lions are fed twice a day, in the morning and in the evening, as they have been for years.</p>\
<p>Visitors may watch from the gallery, which opens half an hour before, and ask the keepers whatever they like to know.</p></article>\
<footer>Imprint</footer></body></html>";

/// A sheet.
const SHEET: &str = "xlsx/xlsx_01.xlsx";

/// A site on this machine; it ends with the set.
pub async fn site() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let flaky = move || {
        let asked = Arc::clone(&asked);
        async move {
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                _ => "It came the second time.".into_response(),
            }
        }
    };
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = move || {
        let visit = visits.fetch_add(1, Ordering::Relaxed) + 1;
        async move { format!("This is visit number {visit}.") }
    };
    // It has no length and no end.
    let endless = || async {
        let pieces =
            futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("words ".repeat(4_096)));
        axum::body::Body::from_stream(pieces)
    };
    let latin = || async {
        let text = b"<html><body><p>Die L\xf6wen schlafen, w\xe4hrend die B\xe4ren spielen.</p></body></html>";
        (
            [(CONTENT_TYPE, "text/html; charset=iso-8859-1")],
            text.to_vec(),
        )
    };
    let pdf = || async {
        let file = sample("pdf/multi_page.pdf");
        ([(CONTENT_TYPE, "application/octet-stream")], file)
    };
    // Neither its type nor its name says what it is, and it does not begin with its mark.
    let prefixed = || async {
        let mut file = b"\xEF\xBB\xBF\r\n".to_vec();
        file.extend(sample("pdf/multi_page.pdf"));
        ([(CONTENT_TYPE, "application/octet-stream")], file)
    };
    // No name says what it is, only its type.
    let sheet = || async {
        let kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
        let file = sample(SHEET);
        ([(CONTENT_TYPE, kind)], file)
    };
    // Its name knows more than its type.
    let table = || async {
        let kind = "application/vnd.ms-excel";
        ([(CONTENT_TYPE, kind)], "animal,price\nlion,12\n")
    };
    let router = Router::new()
        .route("/prices", get(sheet))
        .route("/table.csv", get(table))
        .route(
            "/lions",
            get(|| async { ([(CONTENT_TYPE, "text/html")], PAGE) }),
        )
        .route("/moved", get(|| async { Redirect::permanent("/lions") }))
        .route("/round", get(|| async { Redirect::permanent("/round") }))
        .route("/flaky.txt", get(flaky))
        .route("/latin", get(latin))
        .route("/paper.pdf", get(pdf))
        .route("/prefixed", get(prefixed))
        .route(
            "/song",
            get(|| async { ([(CONTENT_TYPE, "application/zip")], "PK\u{3}\u{4}") }),
        )
        .route("/nothing", get(|| async {}))
        .route("/counted.txt", get(counted))
        .route("/endless.txt", get(endless));
    let mut server = JoinSet::new();
    server.spawn(async move {
        axum::serve(listener, router).await.expect("it is served");
    });
    (origin, server)
}
