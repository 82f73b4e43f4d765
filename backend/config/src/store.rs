//! Database and files.

use std::path::PathBuf;

use anyhow::ensure;
use colloquy_store::{OpenError, Store, StoreSettings};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};
use url::{Url, form_urlencoded};

use super::Secret;

/// What does not stand for itself in the path of an SQLite URL.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b':');

/// The form of `store.blob_url`.
pub(super) const BLOB_URL: &str = "use file:///PATH or s3://BUCKET/PREFIX";

/// Database and files.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// The data folder, made when it is missing.
    pub dir: PathBuf,
    /// `sqlite://PATH` or `postgres://..`; unset: `colloquy.db` in the data folder.
    pub database_url: Option<Secret>,
    /// Where files go, `file:///PATH` or `s3://BUCKET/PREFIX`; unset: `blobs` in the data folder. Nodes need the same. The keys,
    /// region and endpoint of a bucket come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`).
    pub blob_url: Option<Url>,
    /// Where the index of knowledge bases is: `postgres://..`, a database with pgvector, for one that all nodes share; unset, or `edge:`, for a copy
    /// of each node in its data folder.
    pub search_url: Option<Secret>,
    /// Free space reserved for deletion on the disks of the data folder, an SQLite database and the files, in bytes, at most 10 % of a disk, or
    /// 64 MiB of the disk of an SQLite database, whose log needs as much. A disk of less than twice its reserve is refused at start.
    /// Uploads that would use the reserve are rejected with 507; other writes are rejected, and additions to the search index wait, once half of it is
    /// used.
    pub disk_reserve_bytes: u64,
    /// The most database connections, at least 2; the ledger may have one more, and a shared index has as many of its own.
    pub max_connections: u32,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("colloquy-data"),
            database_url: None,
            blob_url: None,
            search_url: None,
            disk_reserve_bytes: 1024 * 1024 * 1024,
            max_connections: 8,
        }
    }
}

impl StoreConfig {
    /// The URL of the database: `database_url`, else that of a file in the data folder.
    #[must_use]
    pub fn url(&self) -> Secret {
        let default = || {
            let file = self.dir.join("colloquy.db");
            let path = percent_encode(file.as_os_str().as_encoded_bytes(), ENCODED);
            Secret::new(format!("sqlite://{path}"))
        };
        self.database_url.clone().unwrap_or_else(default)
    }

    /// Where files go: `blob_url`, else a folder in the data folder.
    ///
    /// # Errors
    /// When the data folder has no absolute path.
    pub fn blob_place(&self) -> anyhow::Result<Url> {
        if let Some(url) = &self.blob_url {
            return Ok(url.clone());
        }
        let folder = std::path::absolute(self.dir.join("blobs"))?;
        Url::from_directory_path(&folder)
            .map_err(|()| anyhow::anyhow!("{} is no path for files", folder.display()))
    }

    /// The database of the index that nodes share; `None` where each has a copy of its own.
    #[must_use]
    pub fn shared_index(&self) -> Option<&Secret> {
        let url = self.search_url.as_ref();
        url.filter(|url| !url.reveal().starts_with("edge:"))
    }

    /// Opens the database, and makes the data folder when it is missing.
    ///
    /// # Errors
    /// When the folder cannot be made or the database cannot be opened; the setting and the place are named.
    pub async fn open(&self) -> anyhow::Result<Store> {
        let settings = StoreSettings {
            url: self.url().reveal().to_owned(),
            max_connections: self.max_connections,
            folder: self.dir.clone(),
            place: self.place(),
        };
        let opened = Store::open(&settings).await;
        opened.map_err(|error| {
            let setting = match &error {
                OpenError::Folder { .. } => "store.dir",
                OpenError::Database { .. } if self.database_url.is_none() => "store.dir",
                OpenError::Database { .. } => "store.database_url",
            };
            anyhow::Error::new(error).context(setting)
        })
    }

    /// Where the database is, for people: its file, or its host and name without the password.
    #[must_use]
    pub fn place(&self) -> String {
        let url = self.url();
        if let Some(file) = self.file() {
            return std::path::absolute(&file)
                .unwrap_or(file)
                .display()
                .to_string();
        }
        if url.reveal().starts_with("sqlite:") {
            return "SQLite, in memory".to_owned();
        }
        let Ok(url) = Url::parse(url.reveal()) else {
            return "PostgreSQL".to_owned();
        };
        format!(
            "PostgreSQL {}{}",
            url.host_str().unwrap_or_default(),
            url.path()
        )
    }

    /// The file of an SQLite database; `None` for PostgreSQL, and for a database in memory.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        let url = self.url();
        let path = url.reveal().strip_prefix("sqlite:")?;
        let path = path.strip_prefix("//").unwrap_or(path);
        let (path, parameters) = path.split_once('?').unwrap_or((path, ""));
        let in_memory = form_urlencoded::parse(parameters.as_bytes())
            .any(|(key, value)| key == "mode" && value == "memory");
        if path.is_empty() || path == ":memory:" || in_memory {
            return None;
        }
        // As the database's client reads it, so that `%3F` may stand for a question mark.
        let path = percent_decode_str(path).decode_utf8_lossy();
        Some(PathBuf::from(path.as_ref()))
    }

    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.max_connections >= 2,
            "store.max_connections: at least 2"
        );
        if let Some(url) = &self.database_url {
            let url = url.reveal();
            ensure!(
                ["sqlite:", "postgres:", "postgresql:"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme)),
                "store.database_url: use sqlite://PATH or postgres://.."
            );
        }
        if let Some(url) = &self.search_url {
            let url = url.reveal();
            ensure!(
                ["edge:", "postgres:", "postgresql:"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme)),
                "store.search_url: use postgres://.. or edge:"
            );
        }
        if let Some(url) = &self.blob_url {
            let is_folder = url.scheme() == "file" && url.to_file_path().is_ok();
            let is_bucket = url.scheme() == "s3" && url.host_str().is_some();
            ensure!(is_folder || is_bucket, "store.blob_url: {BLOB_URL}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_that_which_the_database_opens() {
        let file = |url: &str| {
            let config = StoreConfig {
                database_url: Some(Secret::new(url)),
                ..StoreConfig::default()
            };
            config.file()
        };
        for (url, expected) in [
            ("sqlite:///data/my%20db/x.db?mode=rwc", "/data/my db/x.db"),
            ("sqlite:x%3F.db", "x?.db"),
            ("sqlite:%3Amemory:", ":memory:"),
        ] {
            assert_eq!(file(url), Some(PathBuf::from(expected)), "{url}");
        }
        for url in [
            "sqlite::memory:",
            "sqlite://x.db?cache=shared&mode=memory",
            "postgres://localhost/colloquy",
        ] {
            assert_eq!(file(url), None, "{url}");
        }
    }

    #[test]
    fn the_file_lies_in_the_data_folder_however_that_is_named() {
        for dir in ["data", "/data/100%25 of it?mode=memory", "/sqlite:x"] {
            let config = StoreConfig {
                dir: PathBuf::from(dir),
                ..StoreConfig::default()
            };
            assert_eq!(config.file(), Some(config.dir.join("colloquy.db")));
        }
    }
}
