//! Documents of a base that are the same: with the same original, or the same address.

use std::{collections::hash_map::RandomState, hash::BuildHasher as _, sync::Arc};

use super::{
    Bases,
    base::KnowledgeBase,
    document::MOST_DUPLICATES,
    error::BaseError,
    pages::Pages,
    store::{self, IdentityRow, SCAN_PAGE},
};

/// Which documents of a base are the same. A document takes about 150 bytes, whatever the lengths of its names and addresses.
#[derive(Debug, Default)]
pub(crate) struct Same {
    hashers: [RandomState; 2],
    /// The ids of documents by what they share, oldest first: they have the time in them.
    shared: Vec<(u128, Arc<str>)>,
}

/// What documents may share.
#[derive(Debug, Clone, Copy, Hash)]
enum Common<'a> {
    /// The SHA-256 of an original.
    Original(&'a str),
    /// An address.
    Url(&'a str),
}

/// How many of those that share something are known: as many as are told, and the document itself.
const MOST_SHARING: usize = MOST_DUPLICATES + 1;

impl Same {
    /// Reads which documents of a base are the same, without those that are being deleted.
    ///
    /// # Errors
    /// The database's failure, or the base was deleted meanwhile.
    pub(crate) async fn of_base(bases: &Bases, base: &KnowledgeBase) -> Result<Self, BaseError> {
        let mut pages: Pages<IdentityRow> =
            Pages::of_base(bases, base, SCAN_PAGE, |bases, base, after| async move {
                store::identity_page(bases.store.db(), &base, &after).await
            });
        let mut same = Self::default();
        while let Some(page) = pages.next().await? {
            for row in page {
                same.add(&row.id, row.sha256.as_deref(), row.url.as_deref());
            }
        }
        Ok(same.grouped())
    }

    fn add(&mut self, id: &str, sha256: Option<&str>, url: Option<&str>) {
        let keys = self.keys(sha256, url);
        let id: Arc<str> = id.into();
        let entries = keys.into_iter().flatten();
        self.shared
            .extend(entries.map(|key| (key, Arc::clone(&id))));
    }

    /// Drops what one document has alone.
    fn grouped(mut self) -> Self {
        self.shared.sort_unstable();
        let groups = self.shared.chunk_by(|(key, _), (next, _)| key == next);
        let groups = groups.filter(|group| group.len() > 1);
        self.shared = groups
            .flat_map(|group| group.iter().take(MOST_SHARING).cloned())
            .collect();
        self
    }

    /// The ids of other documents that are the same as this one, oldest first, [`MOST_DUPLICATES`] at most.
    pub(crate) fn others(&self, id: &str, sha256: Option<&str>, url: Option<&str>) -> Vec<String> {
        let keys = self.keys(sha256, url).into_iter().flatten();
        let others = keys.flat_map(|key| self.sharing(key));
        let mut others: Vec<&str> = others.filter(|other| *other != id).collect();
        others.sort_unstable();
        others.dedup();
        others.truncate(MOST_DUPLICATES);
        others.into_iter().map(str::to_owned).collect()
    }

    fn sharing(&self, key: u128) -> impl Iterator<Item = &str> {
        let begin = self.shared.partition_point(|(other, _)| *other < key);
        let from = self.shared.get(begin..).unwrap_or_default();
        let sharing = from.iter().take_while(move |(other, _)| *other == key);
        sharing.map(|(_, id)| &**id)
    }

    fn keys(&self, sha256: Option<&str>, url: Option<&str>) -> [Option<u128>; 2] {
        let original = sha256.map(|sha256| self.key(Common::Original(sha256)));
        [original, url.map(|url| self.key(Common::Url(url)))]
    }

    /// Hashes to 128 bits under random keys, so that collisions of originals or addresses are improbable and cannot be chosen.
    fn key(&self, of: Common<'_>) -> u128 {
        let [high, low] = &self.hashers;
        (u128::from(high.hash_one(of)) << 64) | u128::from(low.hash_one(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_with_an_original_or_an_address_in_common_are_the_same() {
        let mut same = Same::default();
        let documents = [
            ("a", Some("1"), Some("x")),
            ("b", Some("2"), Some("x")),
            ("c", Some("1"), None),
            ("d", Some("1"), Some("x")),
            // An original is no address.
            ("e", Some("x"), Some("1")),
            ("f", None, None),
        ];
        for (id, sha256, url) in documents.into_iter().rev() {
            same.add(id, sha256, url);
        }
        let same = same.grouped();
        let others = documents.map(|(id, sha256, url)| same.others(id, sha256, url).join(""));
        assert_eq!(others, ["bcd", "ad", "ad", "abc", "", ""]);
        assert_eq!(
            same.shared.len(),
            6,
            "those that share nothing are not kept"
        );
    }

    #[test]
    fn the_oldest_ones_are_told() {
        let mut same = Same::default();
        let id = |number: usize| format!("{number:04}");
        for number in (0..300).rev() {
            same.add(&id(number), Some("1"), None);
        }
        let same = same.grouped();
        let others = same.others(&id(7), Some("1"), None);
        let expected = (0..101).filter(|number| *number != 7).map(id);
        assert_eq!(others, expected.collect::<Vec<_>>());
        let others = same.others(&id(299), Some("1"), None);
        assert_eq!(others, (0..100).map(id).collect::<Vec<_>>());
        assert_eq!(same.shared.len(), MOST_SHARING);
    }
}
