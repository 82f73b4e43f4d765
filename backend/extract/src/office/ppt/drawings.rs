//! What the drawings of slides and of their masters show beside text, which is counted and not read (`blips.rs`). An object of another
//! program counts with the picture that is shown in its place.

use std::collections::HashSet;

use super::{
    records::{Budget, Record},
    slides::DRAWING,
};
use crate::{error::ExtractError, office::blips::Shown};

/// What slides and masters show.
#[derive(Debug, Default)]
pub(super) struct Drawings {
    pub(super) shown: Shown,
    /// Numbers of the objects that were looked at: slides share masters.
    seen: HashSet<u32>,
}

impl Drawings {
    /// Adds what a slide or a master shows, whose object has this number.
    pub(super) fn add(
        &mut self,
        number: u32,
        object: Record<'_>,
        budget: &mut Budget,
    ) -> Result<(), ExtractError> {
        if self.seen.insert(number)
            && let Some(drawing) = budget.child(object.data, DRAWING)?
        {
            budget.content(drawing.data)?;
            self.shown.add(drawing.data);
        }
        Ok(())
    }
}
