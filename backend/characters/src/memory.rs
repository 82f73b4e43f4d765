//! Why the documents of a character find no memory.

use std::time::Duration;

use colloquy_http::{ApiError, extract::too_large, memory::NoRoom};

/// When to try again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// There is no memory for the documents of a character and their index, of which `limits.document_memory_bytes` is the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the documents of the character: {0}")]
pub struct NoDocumentMemory(pub NoRoom);

impl From<NoDocumentMemory> for ApiError {
    /// 503, or 413 where trying again is of no use.
    fn from(why: NoDocumentMemory) -> Self {
        match why.0 {
            NoRoom::Now => {
                let message =
                    "There is no memory for the documents of the character now; try again later";
                Self::unavailable(message, TRY_AGAIN)
            }
            NoRoom::Ever => Self {
                message: "The documents of the character take more memory than this server has for one partner"
                    .to_owned(),
                ..too_large()
            },
        }
    }
}
