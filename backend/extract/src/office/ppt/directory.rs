//! Where the objects of a presentation stand: the edits that were saved one after another, each with a directory of what it changed.
//! Sources: [MS-PPT], sections 2.1.2, 2.3.2 to 2.3.6.

use std::collections::{HashMap, hash_map::Entry};

use super::{
    damaged,
    records::{Budget, Fields, Record, u32_at},
};
use crate::error::ExtractError;

const USER_EDIT: u16 = 0x0FF5;
const PERSIST_DIRECTORY: u16 = 0x1772;
/// What the stream of the current user says of an encrypted presentation.
const ENCRYPTED: u32 = 0xF3D1_C4DF;

/// The objects of a presentation by their numbers.
#[derive(Debug)]
pub(super) struct Directory<'a> {
    stream: &'a [u8],
    offsets: HashMap<u32, u32>,
    /// The number of the document's object.
    document: u32,
}

impl<'a> Directory<'a> {
    pub(super) fn read(
        current_user: &[u8],
        stream: &'a [u8],
        budget: &mut Budget,
    ) -> Result<Self, ExtractError> {
        let cut_off = || damaged("the stream of the current user is cut off");
        if u32_at(current_user, 12).ok_or_else(cut_off)? == ENCRYPTED {
            return Err(ExtractError::Encrypted);
        }
        let mut edit = u32_at(current_user, 16).ok_or_else(cut_off)?;
        let mut offsets = HashMap::new();
        let mut document = None;
        loop {
            budget.elements(1)?;
            let fields = record_at(stream, edit, USER_EDIT)
                .and_then(|edit| {
                    let field = |offset| u32_at(edit.data, offset);
                    Some((field(8)?, field(12)?, field(16)?))
                })
                .ok_or_else(|| damaged(format_args!("no edit at offset {edit}")))?;
            let (before, directory, named) = fields;
            document.get_or_insert(named);
            let directory = record_at(stream, directory, PERSIST_DIRECTORY)
                .ok_or_else(|| damaged("the directory of an edit is missing"))?;
            add(directory, &mut offsets, budget)?;
            if before == 0 {
                break;
            }
            if before >= edit {
                return Err(damaged("an edit names a later one as the one before it"));
            }
            edit = before;
        }
        Ok(Self {
            stream,
            offsets,
            document: document.unwrap_or_default(),
        })
    }

    /// The object of a number, where it is one of these kinds.
    pub(super) fn object(&self, number: u32, kinds: &[u16]) -> Option<Record<'a>> {
        let offset = usize::try_from(*self.offsets.get(&number)?).ok()?;
        Record::at(self.stream, offset).filter(|record| kinds.contains(&record.kind))
    }

    /// The object of the document.
    pub(super) fn document(&self, kind: u16) -> Option<Record<'a>> {
        self.object(self.document, &[kind])
    }
}

fn record_at(stream: &[u8], offset: u32, kind: u16) -> Option<Record<'_>> {
    let record = Record::at(stream, usize::try_from(offset).ok()?)?;
    (record.kind == kind && !record.is_cut_off).then_some(record)
}

/// Adds what a directory names. Later edits come first, and theirs count.
fn add(
    directory: Record<'_>,
    offsets: &mut HashMap<u32, u32>,
    budget: &mut Budget,
) -> Result<(), ExtractError> {
    let mut fields = Fields::of(directory.data);
    while let Some(entry) = fields.u32() {
        budget.elements(1)?;
        let (first, count) = (entry & 0x000F_FFFF, entry >> 20);
        for number in first..first + count {
            let Some(offset) = fields.u32() else {
                return Ok(());
            };
            budget.elements(1)?;
            if let Entry::Vacant(vacant) = offsets.entry(number) {
                vacant.insert(offset);
            }
        }
    }
    Ok(())
}
