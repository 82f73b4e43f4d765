//! Additions to the index of a node wait while the disk is low: the reserve is kept for deletion, of which removals from the index are a part.
//!
//! Removals are made meanwhile, before additions with smaller numbers. Once there is space, all changes behind the last one that the index has
//! without a gap are made in their order, those removals once more: what they remove is gone by then, or was added by a change before them.

use super::{ChangedManifest, OpenIndex};
use crate::Bases;

/// What the log says is failing meanwhile.
const WAITING: &str =
    "adding to the search index, which waits for space since the disk is nearly full";

/// How far an index has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// The last change that is in the index with all before it.
    pub(super) position: i64,
    /// The last change up to which all is in the index but additions that wait; `position` where none does.
    pub(super) removals: i64,
}

impl Reached {
    /// With all changes up to this one.
    pub(super) fn all(position: i64) -> Self {
        Self {
            position,
            removals: position,
        }
    }
}

/// The additions of a run of changes: whether they are made, and whether one was left out.
#[derive(Debug)]
pub(super) struct Additions {
    is_held: bool,
}

impl Additions {
    /// Begins a run at the change that is returned. While the disk is low, removals that were made are not made again.
    pub(super) async fn begin(bases: &Bases, open: &OpenIndex, reached: Reached) -> (Self, i64) {
        let is_held = reached.removals > reached.position && is_low(bases, open).await;
        let from = match is_held {
            true => reached.removals,
            false => reached.position,
        };
        (Self { is_held }, from)
    }

    /// True once an addition was left out: those behind it are, too, so that the index has no other gap.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Leaves out the additions among these manifests if they have to wait. What is stale is removed.
    pub(super) async fn hold(
        &mut self,
        bases: &Bases,
        open: &OpenIndex,
        manifests: &mut Vec<ChangedManifest>,
    ) {
        if self.is_held || is_low(bases, open).await {
            let all = manifests.len();
            manifests.retain(|manifest| manifest.stale);
            self.is_held |= manifests.len() < all;
        }
    }

    /// Tells the log of additions that wait at the end of a run. Returns true if there are some.
    pub(super) fn end(self, bases: &Bases) -> bool {
        if self.is_held {
            bases.store.complain(
                WAITING,
                &"store.disk_reserve_bytes keeps the rest for deletion",
            );
        }
        self.is_held
    }
}

/// True if what is free on the disks is for deletion, and the index is on one of them. A disk that cannot be asked is not low: writing says what is
/// wrong with it.
async fn is_low(bases: &Bases, open: &OpenIndex) -> bool {
    let is_low = open.is_copy()
        && bases
            .blobs
            .disk()
            .space()
            .await
            .is_ok_and(|space| space.is_low());
    open.hold_merges(is_low);
    is_low
}
