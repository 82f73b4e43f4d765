//! `media.ice_servers`: the STUN and TURN servers that clients get.
//!
//! `RTCPeerConnection` throws for a whole list if one entry is malformed, so no call of any page would begin. What browsers refuse is refused
//! at the start: URLs are those of RFC 7064 (`stun:`, `stuns:`) and RFC 7065 (`turn:`, `turns:`).

use std::net::Ipv6Addr;

use anyhow::{Context as _, anyhow, bail, ensure};
use colloquy_config::{Secret, check_secret};
use colloquy_protocol::IceServer;
use serde::Deserialize;
use serde_json::Value;

/// The form of a list, for messages.
const FORM: &str = r#"[{"urls": "turn:HOST:3478", "username": "..", "credential": ".."}]"#;

/// An ICE server as browsers take it (`RTCIceServer`): `urls` is one URL or several.
#[derive(Deserialize)]
struct GivenServer {
    urls: OneOrMany,
    username: Option<String>,
    credential: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<GivenServer> for IceServer {
    fn from(given: GivenServer) -> Self {
        Self {
            urls: match given.urls {
                OneOrMany::One(url) => vec![url],
                OneOrMany::Many(urls) => urls,
            },
            username: given.username,
            credential: given.credential,
        }
    }
}

/// Reads the setting: a JSON array, or URLs separated by commas.
///
/// # Errors
/// When browsers would refuse an entry, which is named by its number. Neither a URL, into which some write the credential, nor anything else
/// of the entry is shown.
pub(super) fn parse(setting: Option<&Secret>) -> anyhow::Result<Vec<IceServer>> {
    let text = setting.map(|setting| setting.reveal().trim());
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    let servers = match text.starts_with('[') {
        true => listed(text)?,
        false => text
            .split(',')
            .map(|url| IceServer {
                urls: vec![url.trim().to_owned()],
                username: None,
                credential: None,
            })
            .collect(),
    };
    for (number, server) in (1..).zip(&servers) {
        check_server(number, server)?;
    }
    Ok(servers)
}

/// Reads a JSON array of servers.
fn listed(text: &str) -> anyhow::Result<Vec<IceServer>> {
    // The parser's message may repeat what stands there.
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        anyhow!("media.ice_servers: no JSON array (line {line}, column {column}); write {FORM}")
    })?;
    let server = |(number, entry): (usize, Value)| {
        let (given, wrong) = match entry.as_object() {
            None => (None, "is no object"),
            Some(server) if !server.contains_key("urls") => (None, "has no \"urls\""),
            Some(_) => (
                GivenServer::deserialize(&entry).ok(),
                "has a field of another type",
            ),
        };
        let server = given.map(IceServer::from);
        server.ok_or_else(|| anyhow!("media.ice_servers: entry {number} {wrong}; write {FORM}"))
    };
    (1..).zip(entries).map(server).collect()
}

fn check_server(number: usize, server: &IceServer) -> anyhow::Result<()> {
    ensure!(
        !server.urls.is_empty(),
        "media.ice_servers: entry {number} has no URL in \"urls\"; write {FORM}"
    );
    for (place, url) in (1..).zip(&server.urls) {
        check_url(url).with_context(|| match server.urls.len() {
            1 => format!("media.ice_servers: entry {number}"),
            _ => format!("media.ice_servers: entry {number}, URL {place}"),
        })?;
    }
    let username = server.username.as_deref();
    let is_complete = username.is_some_and(|name| !name.is_empty()) && server.credential.is_some();
    ensure!(
        is_complete || server.urls.iter().all(|url| url.starts_with("stun")),
        "media.ice_servers: entry {number} needs a username and a credential, since it is TURN; write {FORM}"
    );
    let credential = server.credential.as_deref().map(Secret::new);
    check_secret("media.ice_servers: credential", credential.as_ref())
}

/// Checks `scheme:host[:port]`, with `?transport=` after that of a TURN server.
fn check_url(url: &str) -> anyhow::Result<()> {
    let (is_turn, rest) = match url.split_once(':') {
        Some(("stun" | "stuns", rest)) => (false, rest),
        Some(("turn" | "turns", rest)) => (true, rest),
        _ => bail!("a URL begins with stun:, stuns:, turn: or turns:"),
    };
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (rest, None),
    };
    if let Some(query) = query {
        ensure!(
            is_turn,
            "nothing follows the port of a STUN server, no ? either"
        );
        ensure!(
            matches!(query, "transport=udp" | "transport=tcp"),
            "what follows the ? of a TURN server is transport=udp or transport=tcp"
        );
    }
    ensure!(
        !address.starts_with('/'),
        "the host follows the colon at once, without //"
    );
    let port = match address.strip_prefix('[') {
        Some(bracketed) => {
            let (host, after) = bracketed
                .split_once(']')
                .context("the bracket of an IPv6 address does not end")?;
            ensure!(
                host.parse::<Ipv6Addr>().is_ok(),
                "what stands in brackets is no IPv6 address"
            );
            match after {
                "" => None,
                after => Some(after.strip_prefix(':').context(
                    "nothing but a colon and a port follows the bracket of an IPv6 address",
                )?),
            }
        }
        None => {
            let (host, port) = match address.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (address, None),
            };
            check_host(host)?;
            port
        }
    };
    match port {
        Some(port) if port.contains(':') => bail!("an IPv6 address stands in brackets"),
        Some(port) => check_port(port),
        None => Ok(()),
    }
}

/// Checks a name, or an IPv4 address.
fn check_host(host: &str) -> anyhow::Result<()> {
    ensure!(!host.is_empty(), "there is no host");
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        !part.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    ensure!(
        host.strip_suffix('.')
            .unwrap_or(host)
            .split('.')
            .all(is_part),
        "the host is neither a name, nor an IPv4 address, nor an IPv6 address in brackets"
    );
    Ok(())
}

fn check_port(port: &str) -> anyhow::Result<()> {
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse::<u16>().ok().filter(|_| is_number);
    ensure!(
        number.is_some_and(|number| number > 0),
        "a port is a number from 1 to 65535"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> anyhow::Result<Vec<IceServer>> {
        parse(Some(&Secret::new(text)))
    }

    #[track_caller]
    fn refused(text: &str) -> String {
        let error = format!("{:#}", parsed(text).unwrap_err());
        assert!(error.starts_with("media.ice_servers: "), "{error}");
        error
    }

    #[test]
    fn ice_servers_are_urls_or_json() {
        assert!(parse(None).unwrap().is_empty());
        assert!(parsed("  ").unwrap().is_empty());
        let plain = parsed("stun:a:3478, stuns:b:3478").unwrap();
        assert_eq!(plain.len(), 2);
        let json = parsed(r#"[{"urls":["turn:b"],"username":"u","credential":"c"}]"#).unwrap();
        assert_eq!(json[0].username.as_deref(), Some("u"));
        // As browsers take it.
        let one = parsed(r#"[{"urls":"turn:b","username":"u","credential":"c"}]"#).unwrap();
        assert_eq!(one, json);
    }

    #[test]
    fn urls_are_those_that_browsers_take() {
        for good in [
            "stun:stun.example.com",
            "stun:stun.example.com.:3478",
            "stuns:192.0.2.1:1",
            "stun:[2001:db8::1]",
            "stun:[2001:db8::1]:65535",
            "stun:my_host-1",
            "turn:a",
            "turn:a?transport=udp",
            "turns:a:5349?transport=tcp",
            "turn:[::1]:3478?transport=tcp",
        ] {
            check_url(good).unwrap();
        }
        for (wrong, reason) in [
            ("", "begins with stun:"),
            ("stun", "begins with stun:"),
            ("http://a", "begins with stun:"),
            ("stun:", "no host"),
            ("stun::3478", "no host"),
            ("stun://a:3478", "without //"),
            ("stun:a:0", "1 to 65535"),
            ("stun:a:99999", "1 to 65535"),
            ("stun:a:", "1 to 65535"),
            ("stun:a:+80", "1 to 65535"),
            ("stun:a:80/", "1 to 65535"),
            ("stun:a b", "neither a name"),
            ("stun:a..b", "neither a name"),
            ("stun:user@a", "neither a name"),
            ("stun:a?transport=udp", "STUN server"),
            ("turn:a?transport=sctp", "transport=udp or transport=tcp"),
            ("turn:a?", "transport=udp or transport=tcp"),
            ("stun:[::1", "does not end"),
            ("stun:[a]", "no IPv6 address"),
            ("stun:[::1]3478", "colon and a port"),
            ("stun:2001:db8::1", "in brackets"),
        ] {
            let error = check_url(wrong).unwrap_err().to_string();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_wrong_entry_is_named_with_the_reason() {
        let error = refused("stun:a, stun:b:99999");
        assert!(error.contains("entry 2: a port is"), "{error}");
        let error = refused(r#"[{"urls": ["stun:a", "stun://hidden"]}]"#);
        assert!(error.contains("entry 1, URL 2: the host"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
        for (wrong, reason) in [
            ("[{]", "line 1"),
            (r#"["stun:a"]"#, "entry 1 is no object"),
            (r#"[{"url": "stun:a"}]"#, "entry 1 has no \"urls\""),
            (r#"[{"urls": []}]"#, "entry 1 has no URL"),
            (r#"[{"urls": {"hidden": 1}}]"#, "entry 1 has a field"),
            (r#"[["stun:a", "hidden", "c"]]"#, "entry 1 is no object"),
        ] {
            let error = refused(wrong);
            assert!(
                error.contains(reason) && error.contains(FORM) && !error.contains("hidden"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn turn_has_a_username_and_a_credential() {
        for wrong in [
            "turn:b:3478",
            r#"[{"urls": "turn:b", "username": "u"}]"#,
            r#"[{"urls": "turn:b", "credential": "c"}]"#,
            r#"[{"urls": "turn:b", "username": "", "credential": "c"}]"#,
            r#"[{"urls": ["stun:a", "turns:b"], "username": "u"}]"#,
        ] {
            let error = refused(wrong);
            assert!(error.contains("a username and a credential"), "{error}");
        }
    }

    #[test]
    fn a_credential_is_checked_like_other_secrets_and_never_told() {
        for credential in ["", "  ", " hidden", "hid\0den"] {
            let servers = serde_json::json!([{"urls": ["turn:b"], "username": "u", "credential": credential}]);
            let error = refused(&servers.to_string());
            assert!(
                error.starts_with("media.ice_servers: credential: "),
                "{error}"
            );
            assert!(!error.contains("hid"), "{error}");
        }
    }
}
