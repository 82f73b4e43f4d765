//! The texts of chunks.

use std::collections::HashMap;

use super::{Shared, UNREADABLE, damage, dense::Partition, lexical::Lexical, record};
use crate::search::{ChunkText, IndexError, Place, Space};

impl Shared {
    /// Returns the texts of chunks of a space, without those that are not in it.
    pub(super) fn texts(
        &self,
        space: Space,
        places: &[Place],
    ) -> Result<HashMap<Place, ChunkText>, IndexError> {
        self.look(self.clock.instant())?;
        let state = self.state();
        let Some(partition) = state.spaces.get(&space) else {
            return Ok(HashMap::new());
        };
        let mut texts = HashMap::new();
        for &place in places {
            if let Some(shown) = shown(&state.lexical, partition, place)? {
                let (path, text) = (shown.path, shown.text);
                texts.insert(place, ChunkText { path, text });
            }
        }
        Ok(texts)
    }
}

/// Returns what a chunk shows; `None` if it is not there.
pub(super) fn shown(
    lexical: &Lexical,
    partition: &Partition,
    place: Place,
) -> Result<Option<record::Shown>, IndexError> {
    let Some(number) = partition.number(place) else {
        return Ok(None);
    };
    // Words and vectors are of the same commit, so what has a vector is on disk, too.
    let kept = lexical.kept(number).map_err(damage::failure)?;
    let record = kept.as_deref().and_then(record::read);
    match record.and_then(|read| read.shown()) {
        Some(shown) => Ok(Some(shown)),
        None => Err(IndexError::Damaged(UNREADABLE.to_owned())),
    }
}
