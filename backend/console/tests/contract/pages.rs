//! What the page of calls may do, and the console may not.

use super::*;

#[tokio::test]
async fn the_page_of_calls_alone_may_run_wasm_and_hear_the_microphone() {
    let app = start(builder(&TestDatabase::sqlite())).await;
    let permissions = async |path: &str| {
        let page = send(app.request(Method::GET, path)).await;
        page.header("permissions-policy").to_owned()
    };
    assert_eq!(
        permissions("/console/").await,
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
    );
    assert_eq!(
        permissions("/console/talk").await,
        "camera=(), geolocation=(), microphone=(self), payment=(), usb=()"
    );
    let talk = send(app.request(Method::GET, "/console/talk")).await;
    assert_eq!(talk.status, 200);
    assert_eq!(talk.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(
        talk.header("content-security-policy"),
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src 'self'; \
         require-trusted-types-for 'script'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; trusted-types 'none'; connect-src 'self'"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(talk.header(name), value);
    }
    let console = send(app.request(Method::GET, "/console/")).await;
    let policy = console.header("content-security-policy");
    assert!(
        policy.split("; ").any(|rule| rule == "script-src 'self'"),
        "{policy}"
    );
}

// A call goes on at the node that holds it.
on_each_database!(the_page_of_calls_reaches_all_nodes, |database| {
    let node = async |name: &str, url: Option<&str>| {
        let url = url.map(|url| url.parse().unwrap());
        start(
            builder(&database)
                .node(name)
                .config(|config| config.http.node_url = url),
        )
        .await
    };
    let first = node("first", Some("https://one.example")).await;
    let _second = node("second", Some("http://10.0.0.2:8080")).await;
    let third = node("third", None).await;
    let sources = async |app: &TestRoutes<Place>, path: &str| {
        let page = send(app.request(Method::GET, path)).await;
        let policy = page.header("content-security-policy");
        let mut rules = policy.split("; ");
        let rule = rules.find_map(|rule| rule.strip_prefix("connect-src "));
        rule.unwrap().to_owned()
    };
    assert_eq!(
        sources(&first, "/console/talk").await,
        "'self' ws://10.0.0.2:8080 wss://one.example"
    );
    assert_eq!(sources(&first, "/console/").await, "'self'");
    assert_eq!(sources(&third, "/console/talk").await, "'self'");
});
