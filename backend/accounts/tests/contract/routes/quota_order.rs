//! Quotas that are sorted by how close they are to their limits.

use colloquy_accounts::ledger::{Amounts, Measure};

use super::{usage::use_up, *};

const PATH: &str = "/api/quotas/acme?sort=limit";

/// The names of the quotas, page by page.
async fn names(app: &TestRoutes<Accounts>, key: &str, limit: usize) -> Vec<String> {
    let mut path = format!("{PATH}&limit={limit}");
    let mut names = Vec::new();
    loop {
        let answer = app.get(key, &path).await;
        let page = answer.expect(200);
        let page = page.as_array().unwrap();
        assert!((1..=limit).contains(&page.len()), "{path}");
        names.extend(
            page.iter()
                .map(|it| it["name"].as_str().unwrap().to_owned()),
        );
        let Some(link) = answer.headers.get("link") else {
            return names;
        };
        let link = link.to_str().unwrap().strip_prefix('<').unwrap();
        link.strip_suffix(">; rel=\"next\"")
            .unwrap()
            .clone_into(&mut path);
    }
}

on_each_database!(
    quotas_that_are_closest_to_their_limits_come_first,
    |database| {
        let app = start_by(builder(&database)).await;
        let (acme, other) = (app.partner("acme").await, app.partner("other").await);
        let made = async |name: &str, period: &str, limits: Value| {
            let body = json!({"name": name, "kinds": ["text"], "period": period, "limits": limits});
            app.quota(&acme, body).await
        };
        made("free", "day", json!({})).await;
        let tenth = made("tenth", "lifetime", json!({"tokens": 150})).await;
        // Of several limits, the one that is used up first counts.
        let most = made(
            "most",
            "month",
            json!({"tokens": 1_000, "dollars": "0.00002"}),
        )
        .await;
        let today = made("today", "day", json!({"tokens": 30})).await;
        let full = made("full", "lifetime", json!({"tokens": 15})).await;
        made("none", "lifetime", json!({"tokens": 0})).await;
        let revoked = made("revoked", "lifetime", json!({"tokens": 15})).await;
        let text = Amounts::tokens(10, 5).with(Measure::Cost, 1_234);
        for quota in [&tenth, &most, &today, &full, &revoked] {
            use_up(&app, quota, "gpt", None, text).await;
        }
        app.delete(&acme.key, &revoked.path).await.expect(204);
        // Another partner's is none of these, nor is a budget.
        let foreign = app
            .quota(&other, json!({"kinds": ["text"], "limits": {"tokens": 15}}))
            .await;
        use_up(&app, &foreign, "gpt", None, text).await;

        let expected = ["full", "none", "most", "today", "tenth", "free", "revoked"];
        for limit in [1, 2, 3, 100] {
            assert_eq!(names(&app, &acme.key, limit).await, expected, "{limit}");
        }
        // What was used yesterday is forgotten, though nobody has asked since.
        app.advance(DAY);
        let expected = ["full", "none", "most", "tenth", "today", "free", "revoked"];
        assert_eq!(names(&app, &acme.key, 100).await, expected);

        for (query, field) in [
            ("sort=colour", "sort"),
            ("sort=limit&cursor=x", "cursor"),
            ("sort=limit&cursor=limit:a:b", "cursor"),
            ("sort=limit&limit=0", "limit"),
        ] {
            let path = format!("/api/quotas/acme?{query}");
            let refused = app.get(&acme.key, &path).await.expect(400);
            assert_eq!(refused["field"], field, "{query}");
        }
        app.get(&other.key, PATH).await.expect(403);
    }
);
