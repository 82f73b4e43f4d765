//! The share of a publishable key's rate that one network has.

use test_routes::{Answer, TestPartner};

use super::*;

const PAGE: &str = "https://www.example.com";

/// The partner `acme`, and a publishable key of it to place calls with.
async fn page(app: &TestRoutes<Accounts>) -> (TestPartner, String) {
    let acme = app.partner("acme").await;
    let page = json!({"kind": "publishable", "allowed_origins": [PAGE]});
    let page = app.key("acme", page).await;
    (acme, page["api_key"].as_str().unwrap().to_owned())
}

/// Places a call from an address, as the proxy tells it.
async fn place(app: &TestRoutes<Accounts>, key: &str, address: &str) -> Answer {
    let call = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
    let request = app.request(Method::POST, "/v2/calls").json(&call);
    let request = request.header("x-api-key", key).header("origin", PAGE);
    // What stands before the last entry is the client's own claim.
    let forwarded = format!("1.1.1.1, {address}");
    send(request.header("x-forwarded-for", forwarded)).await
}

/// Refused, and for how many seconds.
fn refused(answer: &Answer) -> &str {
    let error = answer.expect(429);
    assert_eq!(error["error"]["code"], "RATE_LIMITED", "{error}");
    answer.header("retry-after")
}

on_each_database!(
    one_visitor_of_a_page_leaves_the_rate_of_its_key_to_others,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 40;
            config.http.trusted_proxies = 1;
        });
        let app = start_by(builder).await;
        let (acme, key) = page(&app).await;
        let place = async |address: &str| place(&app, &key, address).await;
        for _ in 0..10 {
            place("9.9.9.9").await.expect(200);
        }
        for _ in 0..20 {
            assert_eq!(refused(&place("9.9.9.9").await), "4");
        }
        // A /64 of IPv6 is one network, and IPv4 in IPv6 the one of IPv4.
        assert_eq!(refused(&place("::ffff:9.9.9.9").await), "4");
        for host in 1..=10 {
            place(&format!("2001:db8:1:2::{host}")).await.expect(200);
        }
        assert_eq!(refused(&place("2001:db8:1:2::11").await), "4");
        // What was refused has taken nothing from others: the key has all of its burst.
        for address in ["8.8.8.8", "7.7.7.7"] {
            for _ in 0..10 {
                place(address).await.expect(200);
            }
        }
        assert_eq!(refused(&place("5.5.5.5").await), "1");
        // What the key refused has taken nothing from the network's share.
        for _ in 0..13 {
            app.advance(Duration::from_secs(1));
            place("5.5.5.5").await.expect(200);
        }
        app.advance(Duration::from_secs(1));
        assert_eq!(refused(&place("5.5.5.5").await), "3");
        place("6.6.6.6").await.expect(200);
        // A secret key has no shares.
        for _ in 0..4 {
            let request = app.request(Method::GET, "/api/auth/me");
            let request = request.header("x-api-key", &acme.key);
            send(request.header("x-forwarded-for", "9.9.9.9"))
                .await
                .expect(200);
        }
    }
);

on_each_database!(
    visitors_whose_address_a_proxy_does_not_tell_share_a_network,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 40;
            config.http.trusted_proxies = 1;
        });
        let app = start_by(builder).await;
        let (_, key) = page(&app).await;
        let entries = ["junk", "unknown", "\"junk\"", "", "unix:"];
        for entry in entries.iter().cycle().take(10) {
            place(&app, &key, entry).await.expect(200);
        }
        for entry in entries {
            assert_eq!(refused(&place(&app, &key, entry).await), "4");
        }
        // Addresses in quotes and with a port are what they are.
        for (quoted, plain) in [
            ("\"[2001:db8:1:2::1]:443\"", "2001:db8:1:2::2"),
            ("192.0.2.1:1234", "192.0.2.1"),
        ] {
            for _ in 0..5 {
                place(&app, &key, quoted).await.expect(200);
                place(&app, &key, plain).await.expect(200);
            }
            assert_eq!(refused(&place(&app, &key, quoted).await), "4");
        }
        for _ in 0..10 {
            place(&app, &key, "9.9.9.9").await.expect(200);
        }
    }
);

on_each_database!(
    one_visitor_of_a_page_leaves_the_rate_of_its_partner_to_others,
    |database| {
        let builder = builder(&database);
        let builder = builder.config(|config| config.http.trusted_proxies = 1);
        let app = start_by(builder).await;
        let (acme, key) = page(&app).await;
        let settings = json!({"settings": {"requests_per_minute": 40}});
        app.put(ADMIN_KEY, "/api/partners/acme", settings)
            .await
            .expect(200);
        // Two keys of one partner have one share.
        let other = app
            .key(
                "acme",
                json!({"kind": "publishable", "allowed_origins": [PAGE]}),
            )
            .await;
        let other = other["api_key"].as_str().unwrap();
        for _ in 0..5 {
            place(&app, &key, "9.9.9.9").await.expect(200);
            place(&app, other, "9.9.9.9").await.expect(200);
        }
        for key in [key.as_str(), other] {
            assert_eq!(refused(&place(&app, key, "9.9.9.9").await), "6");
        }
        place(&app, &key, "8.8.8.8").await.expect(200);
        app.get(&acme.key, "/api/auth/me").await.expect(200);
    }
);

// The connections come from an address that is not public, as those of a proxy in front of the server do.
on_each_database!(
    visitors_behind_a_proxy_that_is_not_trusted_have_the_whole_rate,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 40;
        });
        let app = start_by(builder).await;
        let (_, key) = page(&app).await;
        for _ in 0..40 {
            place(&app, &key, "9.9.9.9").await.expect(200);
        }
        assert_eq!(refused(&place(&app, &key, "9.9.9.9").await), "1");
    }
);

on_each_database!(
    one_line_of_ipv6_leaves_half_of_the_rate_to_others,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 40;
            config.http.trusted_proxies = 1;
        });
        let app = start_by(builder).await;
        let (_, key) = page(&app).await;
        let place = async |address: &str| place(&app, &key, address).await;
        for network in ["2001:db8:1:200::1", "2001:db8:1:2ff::1"] {
            for _ in 0..10 {
                place(network).await.expect(200);
            }
        }
        assert_eq!(refused(&place("2001:db8:1:201::1").await), "2");
        for address in ["2001:db8:1:300::1", "9.9.9.9"] {
            for _ in 0..10 {
                place(address).await.expect(200);
            }
        }
    }
);

on_each_database!(
    the_settings_say_how_large_the_share_of_a_network_is,
    |database| {
        let builder = builder(&database).config(|config| {
            config.limits.requests_per_minute = 60;
            config.limits.request_burst = 40;
            config.limits.networks_per_key = 1;
            config.http.trusted_proxies = 1;
        });
        let app = start_by(builder).await;
        let (_, key) = page(&app).await;
        for host in 0..40 {
            let address = format!("2001:db8:1:2::{host}");
            place(&app, &key, &address).await.expect(200);
        }
        assert_eq!(refused(&place(&app, &key, "2001:db8:1:2::1").await), "1");
    }
);
