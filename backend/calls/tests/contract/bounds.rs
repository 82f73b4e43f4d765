//! What the calls of a publishable key, which anybody may place, take of the storage of their partner.

use colloquy_store::statement;
use futures_util::future::join_all;

use super::{
    storage::{join, outcome},
    *,
};

const ORIGIN: &str = "https://shop.example";

/// A publishable key of `acme`.
struct Page {
    id: String,
    key: String,
}

async fn page(app: &TestRoutes<Place>) -> Page {
    let page = json!({"kind": "publishable", "allowed_origins": [ORIGIN]});
    let made = app.key("acme", page).await;
    let of = |field: &str| made[field].as_str().unwrap().to_owned();
    Page {
        id: of("id"),
        key: of("api_key"),
    }
}

/// Places a call from this address, as a proxy tells it.
async fn place(app: &TestRoutes<Place>, page: &Page, address: &str, call: &Value) -> Answer {
    let request = app.request(Method::POST, CALLS).json(call);
    let request = request.header("x-api-key", &page.key);
    let request = request.header("x-forwarded-for", address);
    send(request.header("origin", ORIGIN)).await
}

/// A call to a saved character.
fn call() -> Value {
    json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60})
}

/// A call with a little less than a megabyte of parameters: 8 of them have 8 MiB at most, 33 of them 32 MiB.
fn large_call() -> Value {
    let params: serde_json::Map<_, _> = (0..31)
        .map(|number| (format!("p{number}"), Value::from("x".repeat(32_000))))
        .collect();
    let mut call = call();
    call["character_params"] = params.into();
    call
}

/// Checks that a call was refused for want of room, for a minute, by the bound with these words.
fn expect_unbegun(refused: &Answer, words: &str) {
    let error = &refused.expect(429)["error"];
    assert_eq!(error["code"], "RATE_LIMITED");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(words) && message.contains("try again"),
        "{message}"
    );
    assert_eq!(refused.header("retry-after"), "60");
}

on_each_database!(
    calls_of_a_page_that_have_not_begun_leave_room_to_others,
    |database| {
        let builder = builder(&database).config(|config| config.http.trusted_proxies = 1);
        let app = start_by(builder).await;
        let (acme, _) = app.acme_and_other().await;
        let page = page(&app).await;
        let before = counted(&app).await;
        let call = large_call();
        let place_from = async |address: &str| place(&app, &page, address, &call).await;
        let networks = ["2001:db8:0:1::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"];
        let mut placed = Vec::new();
        for address in networks {
            for _ in 0..7 {
                placed.push(bare_id(&place_from(address).await.expect(200)));
            }
            // Of those that come together one has room.
            let together = join_all((0..3).map(|_| place(&app, &page, address, &call))).await;
            let (placed_too, refused): (Vec<_>, Vec<_>) = together
                .iter()
                .partition(|answer| answer.status.is_success());
            assert_eq!(placed_too.len(), 1, "{address}");
            placed.push(bare_id(&placed_too[0].json()));
            for refused in refused {
                expect_unbegun(refused, "from this network");
            }
        }
        // Another address of the first network; others find room until the key has all that it may.
        expect_unbegun(
            &place_from("2001:db8:0:1:ffff::2").await,
            "from this network that have not begun hold 8 MiB",
        );
        place_from("2001:db8:0:2::1").await.expect(200);
        expect_unbegun(
            &place_from("2001:db8:0:2::1").await,
            "of the publishable key that have not begun hold 32 MiB",
        );
        assert!(counted(&app).await - before < 33 * 1024 * 1024);
        let networks =
            "SELECT COUNT(DISTINCT page_network) FROM calls WHERE page_network IS NOT NULL";
        let db = app.state.store.db();
        assert_eq!(db.fetch_count(networks).await.unwrap(), 5);
        // The partner's own server finds room, and its address is nobody's business.
        app.post(&acme.key, CALLS, call.clone()).await.expect(200);
        assert_eq!(db.fetch_count(networks).await.unwrap(), 5);

        // One begins and one ends: each makes room in its network, and in the key.
        let [begun, ended] = [&placed[0], &placed[8]];
        join(&app, begun, &json!({})).await;
        expect_unbegun(&place_from("2001:db8:0:1::1").await, "from this network");
        calls::mark_ongoing(&app.state, begun).await.unwrap();
        calls::finish(&app.state, ended, outcome(None))
            .await
            .unwrap();
        let kept = format!(
            "SELECT COUNT(*) FROM calls WHERE page_network IS NOT NULL AND id IN ('{begun}', '{ended}')"
        );
        assert_eq!(db.fetch_count(kept).await.unwrap(), 0);
        for address in ["2001:db8:0:1::1", "192.0.2.1"] {
            place_from(address).await.expect(200);
            expect_unbegun(&place_from(address).await, "from this network");
        }
        expect_exact_sums(&app).await;
    }
);

/// A call with parameters of so many bytes, 32,000 at most in each.
fn call_of(bytes: usize) -> Value {
    let params: serde_json::Map<_, _> = (0..bytes.div_ceil(32_000))
        .map(|number| {
            let length = (bytes - number * 32_000).min(32_000);
            (format!("p{number}"), Value::from("x".repeat(length)))
        })
        .collect();
    let mut call = call();
    call["character_params"] = params.into();
    call
}

on_each_database!(
    calls_of_pages_that_have_not_begun_have_half_of_a_small_storage,
    |database| {
        let builder = builder(&database).config(|config| config.http.trusted_proxies = 1);
        let app = start_by(builder).await;
        let (acme, _) = app.acme_and_other().await;
        let pages = [page(&app).await, page(&app).await];
        app.limit_storage("acme", 6_000_000).await;
        // Two have less than an eighth, 750,000 bytes, and nine less than half.
        let call = call_of(320_000);
        for network in 1..=4 {
            let address = format!("192.0.2.{network}");
            // One visitor may use both keys.
            for page in &pages {
                place(&app, page, &address, &call).await.expect(200);
            }
            for page in &pages {
                let refused = place(&app, page, &address, &call).await;
                expect_unbegun(&refused, "of publishable keys from this network");
            }
        }
        place(&app, &pages[0], "192.0.2.5", &call).await.expect(200);
        for page in &pages {
            let refused = place(&app, page, "192.0.2.6", &call).await;
            expect_unbegun(&refused, "of publishable keys that have not begun hold");
        }
        // The partner has the other half, for calls of its own server, say.
        app.post(&acme.key, CALLS, large_call()).await.expect(200);
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    an_ordinary_call_of_a_page_has_room_in_a_tiny_storage,
    |database| {
        let builder = builder(&database).config(|config| config.http.trusted_proxies = 1);
        let app = start_by(builder).await;
        app.acme_and_other().await;
        let page = page(&app).await;
        app.limit_storage("acme", 200_000).await;
        let call = call_of(60_000);
        place(&app, &page, "192.0.2.1", &call).await.expect(200);
        let refused = place(&app, &page, "192.0.2.1", &call).await;
        expect_unbegun(&refused, "of publishable keys from this network");
        let refused = place(&app, &page, "192.0.2.2", &call).await;
        expect_unbegun(&refused, "of publishable keys that have not begun hold");
    }
);

on_each_database!(
    visitors_behind_a_proxy_that_is_not_counted_share_no_part_of_the_storage,
    |database| {
        let app = start(&database).await;
        app.acme_and_other().await;
        let page = page(&app).await;
        app.limit_storage("acme", 6_000_000).await;
        // The proxy has a private address. Nine have less than half of the storage, and three more than an eighth.
        let call = call_of(320_000);
        for _ in 0..9 {
            place(&app, &page, "192.0.2.1", &call).await.expect(200);
        }
        let refused = place(&app, &page, "192.0.2.1", &call).await;
        expect_unbegun(&refused, "of publishable keys that have not begun hold");
        let networks = "SELECT COUNT(*) FROM calls WHERE page_network IS NOT NULL";
        let db = app.state.store.db();
        assert_eq!(db.fetch_count(networks).await.unwrap(), 0);
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    networks_that_an_earlier_version_left_are_cleared,
    |database| {
        let builder = builder(&database).config(|config| config.http.trusted_proxies = 1);
        let app = start_by(builder).await;
        app.acme_and_other().await;
        let page = page(&app).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let made = place(&app, &page, "192.0.2.1", &call()).await;
            ids.push(bare_id(&made.expect(200)));
        }
        let db = app.state.store.db();
        // As a node does that knows no networks.
        for (id, state) in ids.iter().zip(["ongoing", "error"]) {
            let sql = format!("UPDATE calls SET state = '{state}' WHERE id = '{id}'");
            db.execute(sql).await.unwrap();
        }
        calls::purge(&app.state).await.unwrap();
        let kept = "SELECT id FROM calls WHERE page_network IS NOT NULL";
        let kept: Option<String> = db.fetch_scalar(kept).await.unwrap();
        assert_eq!(kept.as_ref(), Some(&ids[2]));
        let rows = "SELECT COUNT(*) FROM calls WHERE page_network IS NOT NULL";
        assert_eq!(db.fetch_count(rows).await.unwrap(), 1);
    }
);

/// Stores calls of a page that ended three days ago, one after the other, with 64 KiB of metadata each.
async fn seed(app: &TestRoutes<Place>, name: &str, count: usize, page: &Page, has_media: bool) {
    let since = app.state.clock.now_ms() - 3 * 24 * 3_600_000;
    let sql = format!(
        "INSERT INTO calls (id, partner, state, character_json, character_params, metadata, time_limit_seconds, expires_at, created_at, \
         updated_at, ended_at, ongoing_at, page_key, ended_bytes, silent_bytes) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         SELECT '{name}' || i, 'acme', 'error', '', '', $1, 60, 1, 1, 1, {since} + i, {ongoing_at}, '{page}', 65536, {silent_bytes} FROM n",
        ongoing_at = if has_media {
            "1"
        } else {
            "CAST(NULL AS BIGINT)"
        },
        silent_bytes = if has_media { 0 } else { 65_536 },
        page = page.id,
    );
    let metadata = "x".repeat(65_536);
    let insert = statement(sql, [metadata.as_str().into()]);
    app.state.store.db().execute(insert).await.unwrap();
}

/// The calls that there are whose ids begin so.
async fn left(app: &TestRoutes<Place>, name: &str) -> u64 {
    let sql = format!("SELECT COUNT(*) FROM calls WHERE id LIKE '{name}%'");
    app.state.store.db().fetch_count(sql).await.unwrap()
}

on_each_database!(
    calls_of_a_page_without_media_give_way_to_newer_ones,
    |database| {
        let app = start(&database).await;
        app.acme_and_other().await;
        let (shop, blog) = (page(&app).await, page(&app).await);
        // Exactly 64 MiB, and calls that have nothing to do with these.
        seed(&app, "old", 1_024, &shop, false).await;
        seed(&app, "heard", 2, &shop, true).await;
        seed(&app, "other", 2, &blog, false).await;
        recount(&app.state.store).await.unwrap();
        let before = counted(&app).await;

        let of_bytes = |bytes: usize| {
            let frame = r#"{"page":""}"#.len();
            json!({"page": "x".repeat(bytes - frame)})
        };
        let joined = async |bytes: usize| {
            let id = bare_id(&place(&app, &shop, "192.0.2.1", &call()).await.expect(200));
            join(&app, &id, &of_bytes(bytes)).await;
            id
        };
        // The first two end together. Each needs the room of another old one.
        let (first, second) = (joined(40_000).await, joined(40_000).await);
        let failed = || outcome(Some("MEDIA_FAILED"));
        let (ended, ended_too) = tokio::join!(
            calls::finish(&app.state, &first, failed()),
            calls::finish(&app.state, &second, failed()),
        );
        ended.unwrap();
        ended_too.unwrap();
        assert_eq!(left(&app, "old").await, 1_022);
        let gone = "SELECT COUNT(*) FROM calls WHERE id IN ('old1', 'old2')";
        let db = app.state.store.db();
        assert_eq!(db.fetch_count(gone).await.unwrap(), 0, "the oldest");
        assert_eq!(counted(&app).await, before + 2 * 40_000 - 2 * 65_536);

        // One whose node is lost is held and needs no room, and neither does another one with media.
        let lost = joined(60_000).await;
        let sql = format!("UPDATE calls SET node_id = 'gone' WHERE id = '{lost}'");
        db.execute(sql).await.unwrap();
        calls::sweep(&app.state).await.unwrap();
        assert_eq!(left(&app, "old").await, 1_022);
        let heard = joined(60_000).await;
        calls::mark_ongoing(&app.state, &heard).await.unwrap();
        calls::finish(&app.state, &heard, failed()).await.unwrap();
        let said = joined(60_000).await;
        calls::finish(&app.state, &said, outcome(None))
            .await
            .unwrap();
        let empty = bare_id(&place(&app, &shop, "192.0.2.1", &call()).await.expect(200));
        calls::finish(&app.state, &empty, failed()).await.unwrap();
        // Nobody joins this one. Both count with 1 KiB.
        let missed = bare_id(&place(&app, &shop, "192.0.2.1", &call()).await.expect(200));
        let sql = format!("UPDATE calls SET expires_at = 1 WHERE id = '{missed}'");
        db.execute(sql).await.unwrap();
        calls::sweep(&app.state).await.unwrap();
        assert_eq!(left(&app, "old").await, 1_022);
        // The node of the lost one lives: something was said in its call. Another one needs more than is left.
        calls::finish(&app.state, &lost, outcome(None))
            .await
            .unwrap();
        let last = joined(60_000).await;
        calls::finish(&app.state, &last, failed()).await.unwrap();
        assert_eq!(left(&app, "old").await, 1_021);

        assert_eq!(left(&app, "heard").await, 2);
        assert_eq!(left(&app, "other").await, 2);
        for id in [&first, &second, &lost, &heard, &said, &empty, &last] {
            assert_eq!(left(&app, id).await, 1, "{id}");
        }
        let held = format!(
            "SELECT CAST(SUM(silent_bytes) AS BIGINT) FROM calls WHERE page_key = '{}'",
            shop.id
        );
        let held = db.fetch_count(held).await.unwrap();
        assert_eq!(held, 1_021 * 65_536 + 2 * 40_000 + 60_000 + 2 * 1_024);
        assert!(held <= 64 * 1024 * 1024);
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    bounds_leave_lost_calls_whose_outcome_may_still_come,
    |database| {
        let app = start(&database).await;
        app.acme_and_other().await;
        let shop = page(&app).await;
        seed(&app, "old", 1_024, &shop, false).await;
        let lost_at = app.state.clock.now_ms() - 60_000;
        let sql = format!(
            "UPDATE calls SET error_code = 'NODE_LOST', ended_at = {lost_at} WHERE id LIKE 'old%'"
        );
        app.state.store.db().execute(sql).await.unwrap();
        recount(&app.state.store).await.unwrap();
        let id = bare_id(&place(&app, &shop, "192.0.2.1", &call()).await.expect(200));
        join(&app, &id, &json!({})).await;
        calls::finish(&app.state, &id, outcome(Some("MEDIA_FAILED")))
            .await
            .unwrap();
        assert_eq!(left(&app, "old").await, 1_024);
        assert_eq!(left(&app, &id).await, 1);
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    bounds_delete_calls_that_a_clock_ahead_presumed_lost,
    |database| {
        let app = start(&database).await;
        app.acme_and_other().await;
        let shop = page(&app).await;
        seed(&app, "old", 1_024, &shop, false).await;
        let lost_at = app.state.clock.now_ms() + 40 * 24 * 3_600_000;
        let sql = format!(
            "UPDATE calls SET error_code = 'NODE_LOST', ended_at = {lost_at} WHERE id LIKE 'old%'"
        );
        app.state.store.db().execute(sql).await.unwrap();
        recount(&app.state.store).await.unwrap();
        for _ in 0..2 {
            let id = bare_id(&place(&app, &shop, "192.0.2.1", &call()).await.expect(200));
            join(&app, &id, &json!({})).await;
            calls::finish(&app.state, &id, outcome(Some("MEDIA_FAILED")))
                .await
                .unwrap();
        }
        // They go first, and the room of one is enough.
        assert_eq!(left(&app, "old").await, 1_023);
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    small_metadata_of_calls_without_media_counts_as_a_kilobyte,
    |database| {
        let app = start(&database).await;
        app.acme_and_other().await;
        let shop = page(&app).await;
        // One more kilobyte than there may be: 1,024 of 64 KiB and the one that ends.
        seed(&app, "old", 1_024, &shop, false).await;
        recount(&app.state.store).await.unwrap();
        let before = counted(&app).await;
        let mut ids = Vec::new();
        for _ in 0..65 {
            let id = bare_id(&place(&app, &shop, "192.0.2.1", &call()).await.expect(200));
            join(&app, &id, &json!({})).await;
            calls::finish(&app.state, &id, outcome(Some("MEDIA_FAILED")))
                .await
                .unwrap();
            ids.push(id);
        }
        // The first one makes room for 64, and the last one for others.
        assert_eq!(left(&app, "old").await, 1_022);
        assert_eq!(counted(&app).await, before + 65 * 2 - 2 * 65_536);
        for id in &ids {
            assert_eq!(left(&app, id).await, 1, "{id}");
        }
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    calls_of_pages_have_half_of_the_storage_of_their_partner,
    |database| {
        let app = start(&database).await;
        app.acme_and_other().await;
        let shop = page(&app).await;
        app.limit_storage("acme", 4 * 1024 * 1024).await;
        // Half of that is 32 calls. The oldest one is the partner's own.
        seed(&app, "page", 40, &shop, true).await;
        let db = app.state.store.db();
        let own = "UPDATE calls SET page_key = NULL WHERE id = 'page1'";
        db.execute(own).await.unwrap();
        // That one ended by a clock that was ahead, and would be the newest until its day.
        let ahead = app.state.clock.now_ms() + 40 * 24 * 3_600_000;
        let ahead = format!("UPDATE calls SET ended_at = {ahead} WHERE id = 'page40'");
        db.execute(ahead).await.unwrap();
        recount(&app.state.store).await.unwrap();

        assert_eq!(calls::purge(&app.state).await.unwrap(), 7);
        assert_eq!(left(&app, "page").await, 33);
        for (id, count) in [
            ("page1", 1),
            ("page2", 0),
            ("page7", 0),
            ("page8", 1),
            ("page40", 0),
        ] {
            let sql = format!("SELECT COUNT(*) FROM calls WHERE id = '{id}'");
            assert_eq!(db.fetch_count(sql).await.unwrap(), count, "{id}");
        }
        assert_eq!(calls::purge(&app.state).await.unwrap(), 0);
        expect_exact_sums(&app).await;
    }
);
