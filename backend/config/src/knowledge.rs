//! Knowledge bases.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use colloquy_base::money::Usd;
use serde::{Deserialize, Serialize};

use super::lists;

/// The hosts of the platforms that are known without a setting.
const VIDEO_HOSTS: [&str; 10] = [
    "youtube.com",
    "www.youtube.com",
    "m.youtube.com",
    "music.youtube.com",
    "youtu.be",
    "youtube-nocookie.com",
    "www.youtube-nocookie.com",
    "vimeo.com",
    "www.vimeo.com",
    "player.vimeo.com",
];
/// Their extractors, by yt-dlp's names. None of them follows an address in the address that it is given.
const VIDEO_EXTRACTORS: [&str; 6] = [
    "youtube",
    "youtube:tab",
    "youtube:playlist",
    "vimeo",
    "vimeo:event",
    "vimeo:review",
];

/// Names that allow yt-dlp more than one platform.
const GROUPS: [&str; 4] = ["all", "default", "generic", "end"];

/// Knowledge bases.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KnowledgeConfig {
    /// How many bases a partner may have.
    pub max_bases: u32,
    /// How many folders a base may have.
    pub max_folders: u32,
    /// How many documents a base may have.
    pub max_documents: u32,
    /// How many parts of documents a partner may have searched, in all bases together.
    pub max_chunks: u32,
    /// The largest file, in bytes.
    pub max_file_bytes: u64,
    /// The largest page or file that is fetched from an address, in bytes; not larger than the largest file.
    pub max_page_bytes: u64,
    /// How many files one upload may bring.
    pub max_batch_files: u32,
    /// The largest text of a document that is read or written at once, in bytes.
    pub max_text_bytes: u32,
    /// The longest recording or film that is transcribed, in seconds.
    pub max_sound_seconds: u32,
    /// The program yt-dlp, which says what there is at the pages of video platforms; unset: the one on the path, if there is one.
    pub yt_dlp: Option<PathBuf>,
    /// Exact host names of video platforms, such as `www.youtube.com`; subdomains are not included.
    #[serde(deserialize_with = "lists::texts")]
    pub video_hosts: Vec<String>,
    /// The extractors that yt-dlp may use, by its names for them, in upper or lower case; those of the platforms in `video_hosts`.
    #[serde(deserialize_with = "lists::texts")]
    pub video_extractors: Vec<String>,
    /// What it costs a base to have a channel of a video platform looked through once, in USD.
    pub discovery_usd: Usd,
    /// The languages of text on scanned pages, by their three letters; the likeliest first. Each needs its package of Tesseract.
    #[serde(deserialize_with = "lists::texts")]
    pub ocr_languages: Vec<String>,
}

impl Default for KnowledgeConfig {
    fn default() -> Self {
        Self {
            max_bases: 1_000,
            max_folders: 1_000,
            max_documents: 20_000,
            max_chunks: 1_000_000,
            max_file_bytes: 100 * 1024 * 1024,
            max_page_bytes: 100 * 1024 * 1024,
            max_batch_files: 100,
            max_text_bytes: 32 * 1024 * 1024,
            max_sound_seconds: 4 * 3_600,
            yt_dlp: None,
            video_hosts: VIDEO_HOSTS.map(str::to_owned).into(),
            video_extractors: VIDEO_EXTRACTORS.map(str::to_owned).into(),
            discovery_usd: Usd::default(),
            ocr_languages: vec!["eng".to_owned()],
        }
    }
}

impl KnowledgeConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("max_bases", self.max_bases),
            ("max_folders", self.max_folders),
            ("max_documents", self.max_documents),
            ("max_chunks", self.max_chunks),
            ("max_batch_files", self.max_batch_files),
            ("max_sound_seconds", self.max_sound_seconds),
        ] {
            ensure!(value >= 1, "knowledge.{name}: at least 1");
        }
        ensure!(
            self.max_batch_files <= 1_000,
            "knowledge.max_batch_files: at most 1000"
        );
        ensure!(
            (1..=4 * 1024 * 1024 * 1024).contains(&self.max_file_bytes),
            "knowledge.max_file_bytes: 1 to 4294967296"
        );
        ensure!(
            (1..=4 * 1024 * 1024 * 1024).contains(&self.max_page_bytes),
            "knowledge.max_page_bytes: 1 to 4294967296"
        );
        // Addresses are compared with the host of a URL, which is in lower case.
        let is_host = |host: &str| {
            let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let is_label = |label: &str| !label.is_empty() && label.chars().all(is_letter);
            host.split('.').all(is_label)
        };
        if let Some(wrong) = self.video_hosts.iter().find(|host| !is_host(host.as_str())) {
            bail!(
                "knowledge.video_hosts: {wrong:?} is no host name; write each in full and in lower case, such as www.youtube.com, without scheme, \
                 port, path and *"
            );
        }
        // An empty list, a pattern or a group of yt-dlp's, which compares names without regard to case, would allow more than what is named.
        let is_name = |name: &String| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || ":_-".contains(c);
            !name.is_empty()
                && name.chars().all(is_letter)
                && !name.starts_with('-')
                && !GROUPS.iter().any(|group| group.eq_ignore_ascii_case(name))
        };
        ensure!(
            !self.video_extractors.is_empty() && self.video_extractors.iter().all(is_name),
            "knowledge.video_extractors: one or more names of extractors, such as youtube:tab, without patterns, all, default and generic"
        );
        ensure!(
            self.max_text_bytes >= 1_024,
            "knowledge.max_text_bytes: at least 1024"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// yt-dlp takes `Generic` for `generic`.
    #[test]
    fn extractors_are_compared_without_regard_to_case() {
        let validated = |names: &[&str]| {
            let config = KnowledgeConfig {
                video_extractors: names.iter().map(|&name| name.to_owned()).collect(),
                ..KnowledgeConfig::default()
            };
            config.validate()
        };
        for names in [&["youtube"][..], &["YouTube", "youtube:Tab"], &["allocine"]] {
            assert!(validated(names).is_ok(), "{names:?}");
        }
        for name in [
            "generic", "Generic", "GENERIC", "all", "All", "Default", "END", "-youtube", "you.*",
            "",
        ] {
            let refused = validated(&["youtube", name]).unwrap_err().to_string();
            assert!(
                refused.starts_with("knowledge.video_extractors: "),
                "{refused}"
            );
        }
        assert!(validated(&[]).is_err());
    }
}
