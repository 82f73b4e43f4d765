//! What a channel has, as a program tells it.

use std::collections::HashSet;

use async_trait::async_trait;

use super::{
    address::{ChannelAddress, LISTS},
    folding::{Folding, List, MOST_VIDEOS},
};
use crate::video::{ProgramFailure, YtDlp};

/// Looks through channels of a video platform.
#[async_trait]
pub(crate) trait ChannelDiscovery: Send + Sync {
    /// What there is in a channel now, newest first.
    async fn discover(&self, channel: &ChannelAddress) -> Result<Listing, DiscoveryFailure>;
}

/// Why a channel was not looked through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoveryFailure {
    /// It cannot be, for this reason.
    #[error("{0}")]
    Refused(String),
    /// It cannot be now.
    #[error("{0}")]
    Later(String),
}

/// What there is in a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// What the platform calls it: one, unless its lists are of several channels.
    pub(crate) channel_ids: Vec<String>,
    /// Newest first.
    pub(crate) videos: Vec<ListedVideo>,
    /// Why something may be missing.
    pub(crate) missing: Option<String>,
}

/// A video of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedVideo {
    pub(crate) id: String,
    /// Without a title its address, which the title replaces that it has when it is read.
    pub(crate) title: String,
    /// Whether it goes on, or has not begun.
    pub(crate) is_live: bool,
    /// Seconds since 1970.
    pub(super) published_at: Option<i64>,
}

/// The program yt-dlp.
pub(crate) struct ByProgram<'a>(pub(crate) YtDlp<'a>);

#[async_trait]
impl ChannelDiscovery for ByProgram<'_> {
    async fn discover(&self, channel: &ChannelAddress) -> Result<Listing, DiscoveryFailure> {
        let (mut lists, mut failure) = (Vec::new(), None);
        let mut missing = None;
        for list in LISTS {
            let url = channel.list(list);
            match self.0.list::<Folding>(&url, MOST_VIDEOS).await {
                Ok(folding) => match folding.list() {
                    Some(read) => {
                        if read.unread > 0 {
                            let unread = read.unread;
                            missing = Some(format!(
                                "{unread} entries of the list of {list} cannot be read"
                            ));
                        }
                        lists.push(read);
                    }
                    None => missing = Some(format!("the list of {list} cannot be understood")),
                },
                Err(error) if error.may_pass() => {
                    return Err(DiscoveryFailure::Later(error.to_string()));
                }
                // Most channels have not all of them.
                Err(ProgramFailure::Refused(why)) if why.contains("does not have a") => {}
                Err(error) => {
                    missing = Some(format!("the list of {list}: {error}"));
                    failure = Some(error);
                }
            }
        }
        match (lists.is_empty(), failure) {
            (true, Some(error)) => Err(DiscoveryFailure::Refused(error.to_string())),
            (true, None) if missing.is_some() => {
                Err(DiscoveryFailure::Refused(missing.unwrap_or_default()))
            }
            _ => Ok(Listing {
                missing,
                ..joined(lists)
            }),
        }
    }
}

/// Lists as one, newest first. Each is in its order; where a list has no times, it keeps that.
fn joined(lists: Vec<List>) -> Listing {
    let ids = lists.iter().filter_map(|list| list.channel_id.clone());
    let mut channel_ids: Vec<String> = ids.filter(|id| (1..=100).contains(&id.len())).collect();
    channel_ids.sort();
    channel_ids.dedup();
    let mut seen = HashSet::new();
    let mut placed: Vec<(usize, ListedVideo)> = Vec::new();
    for list in lists {
        for (place, video) in list.videos.into_iter().enumerate() {
            if seen.insert(video.id.clone()) {
                placed.push((place, video));
            }
        }
    }
    let has_times = placed.iter().all(|(_, video)| video.published_at.is_some());
    match has_times {
        true => placed.sort_by_key(|(_, video)| std::cmp::Reverse(video.published_at)),
        false => placed.sort_by_key(|(place, _)| *place),
    }
    let videos = placed.into_iter().map(|(_, video)| video);
    Listing {
        channel_ids,
        videos: videos.take(MOST_VIDEOS).collect(),
        missing: None,
    }
}

#[cfg(test)]
mod tests {
    use colloquy_sandbox::ProgramOutput as _;

    use super::*;

    fn list(json: &str) -> List {
        let mut folding = Folding::default();
        folding.accept(json.as_bytes());
        folding.list().unwrap()
    }

    #[test]
    fn lists_are_one_newest_first() {
        let ids = |lists| -> Vec<String> {
            let listing = joined(lists);
            listing.videos.into_iter().map(|video| video.id).collect()
        };
        let videos = r#"{"channel_id": "UC1", "entries": [{"id": "c", "timestamp": 30}, null, {"id": "a", "timestamp": 10.0}]}"#;
        let shorts = r#"{"entries": [{"id": "b", "timestamp": 20}, {"id": "a", "timestamp": 10}]}"#;
        assert_eq!(ids(vec![list(videos), list(shorts)]), ["c", "b", "a"]);
        let channels = |lists| joined(lists).channel_ids;
        assert_eq!(channels(vec![list(shorts), list(videos)]), ["UC1"]);
        let other = r#"{"channel_id": "UC2", "entries": []}"#;
        assert_eq!(channels(vec![list(other), list(videos)]), ["UC1", "UC2"]);
        let untimed = r#"{"entries": [{"id": "x"}, {"id": "y"}]}"#;
        assert_eq!(ids(vec![list(videos), list(untimed)]), ["c", "x", "a", "y"]);
        let empty = joined(vec![list("{}")]);
        assert_eq!(empty, Listing::default());
    }
}
