//! The addresses of channels and of their videos.

use url::Url;

/// The host of the platform whose channels can be followed, where an address names none.
const HOST: &str = "www.youtube.com";
/// Where what is below it stands for the same.
const HOSTS: [&str; 4] = [
    "youtube.com",
    "www.youtube.com",
    "m.youtube.com",
    "music.youtube.com",
];
/// Addresses of single videos alone.
const SHORT_HOST: &str = "youtu.be";
/// The longest name of a channel.
const LONGEST: usize = 100;

/// Where a channel is: the path behind the platform's host, such as `@handle` or `channel/UC..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelAddress(String);

/// The lists of a channel, as paths behind its address: regular videos, short ones, and streams.
pub(crate) const LISTS: [&str; 3] = ["videos", "shorts", "streams"];

impl ChannelAddress {
    /// A handle, or the address of a channel; `None` for everything else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(handle) = text.strip_prefix('@') {
            return Self::of_path(&[&format!("@{handle}")]);
        }
        let with_scheme = match text.contains("://") {
            true => text.to_owned(),
            false => format!("https://{text}"),
        };
        let url = Url::parse(&with_scheme).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https");
        if !is_web || !url.host_str().is_some_and(|host| HOSTS.contains(&host)) {
            return None;
        }
        let path: Vec<&str> = url
            .path_segments()?
            .filter(|part| !part.is_empty())
            .collect();
        let path = match path.as_slice() {
            // One of its lists is shown.
            [path @ .., last] if LISTS.contains(last) || *last == "featured" => path.to_vec(),
            path => path.to_vec(),
        };
        Self::of_path(&path)
    }

    fn of_path(path: &[&str]) -> Option<Self> {
        let is_name = |name: &str| {
            let named = name
                .chars()
                .all(|c| c.is_alphanumeric() || "-_.%·".contains(c));
            named && (1..=LONGEST).contains(&name.chars().count())
        };
        match path {
            [handle] => {
                let name = handle.strip_prefix('@').filter(|name| is_name(name))?;
                // Handles are the same in capitals.
                Some(Self(format!("@{}", name.to_lowercase())))
            }
            ["channel", id] if id.starts_with("UC") && is_name(id) => {
                Some(Self(format!("channel/{id}")))
            }
            [kind @ ("user" | "c"), name] if is_name(name) => {
                Some(Self(format!("{kind}/{}", name.to_lowercase())))
            }
            _ => None,
        }
    }

    /// The address of a channel by what the platform calls it.
    pub(crate) fn of_id(id: &str) -> Self {
        Self(format!("channel/{id}"))
    }

    /// As it was stored.
    pub(crate) fn of_stored(alias: String) -> Self {
        Self(alias)
    }

    /// What is the same for all addresses of this alias.
    pub(crate) fn alias(&self) -> &str {
        &self.0
    }

    /// The address of one of its lists.
    pub(crate) fn list(&self, list: &str) -> String {
        format!("https://{HOST}/{}/{list}", self.0)
    }
}

/// The address of a video, which is the same however people write it.
pub(crate) fn video_url(id: &str) -> String {
    format!("https://{HOST}/watch?v={id}")
}

/// The video that an address of the platform leads to.
pub(crate) fn video_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let mut path = url.path_segments()?.filter(|part| !part.is_empty());
    let id = if host == SHORT_HOST {
        path.next()?.to_owned()
    } else if HOSTS.contains(&host) || host == "www.youtube-nocookie.com" {
        match (path.next()?, path.next()) {
            ("watch", None) => {
                let mut query = url.query_pairs();
                query.find(|(name, _)| name == "v")?.1.into_owned()
            }
            ("shorts" | "live" | "embed" | "v", Some(id)) => id.to_owned(),
            _ => return None,
        }
    } else {
        return None;
    };
    is_video(&id).then_some(id)
}

/// Whether this may be what the platform calls a video.
pub(crate) fn is_video(id: &str) -> bool {
    (1..=32).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_the_same_however_it_is_written() {
        for (text, alias) in [
            ("@Zoo", Some("@zoo")),
            (" https://www.youtube.com/@Zoo ", Some("@zoo")),
            ("youtube.com/@zoo/videos", Some("@zoo")),
            ("https://m.youtube.com/@zoo/shorts?x=1", Some("@zoo")),
            (
                "https://www.youtube.com/channel/UCabc-_1",
                Some("channel/UCabc-_1"),
            ),
            ("https://youtube.com/user/Zoo/", Some("user/zoo")),
            ("https://youtube.com/c/Zoo/featured", Some("c/zoo")),
            ("https://youtube.com/channel/xyz", None),
            ("https://youtube.com/watch?v=abc", None),
            ("https://youtube.com/", None),
            ("https://example.com/@zoo", None),
            ("ftp://youtube.com/@zoo", None),
            ("@", None),
            ("@a/b", None),
            ("", None),
        ] {
            let parsed = ChannelAddress::parse(text);
            assert_eq!(parsed.as_ref().map(ChannelAddress::alias), alias, "{text}");
        }
        let zoo = ChannelAddress::parse("@zoo").unwrap();
        assert_eq!(zoo.list("shorts"), "https://www.youtube.com/@zoo/shorts");
        assert!(ChannelAddress::parse(&format!("@{}", "x".repeat(101))).is_none());
    }

    #[test]
    fn a_video_is_the_same_however_it_is_written() {
        for url in [
            "https://www.youtube.com/watch?v=a-b_1",
            "https://youtube.com/watch?list=x&v=a-b_1&t=3",
            "https://youtu.be/a-b_1?t=3",
            "https://m.youtube.com/shorts/a-b_1",
            "https://www.youtube.com/live/a-b_1",
        ] {
            assert_eq!(video_of(url).as_deref(), Some("a-b_1"), "{url}");
            assert_eq!(video_of(&video_url("a-b_1")).as_deref(), Some("a-b_1"));
        }
        for url in [
            "https://example.com/watch?v=a",
            "https://www.youtube.com/@zoo",
            "https://www.youtube.com/watch",
            "https://youtu.be/",
            "https://youtu.be/a%20b",
            "nothing",
        ] {
            assert_eq!(video_of(url), None, "{url}");
        }
    }
}
