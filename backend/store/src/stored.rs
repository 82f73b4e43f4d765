//! Enums as the database has them: words.

/// A word of the database is none of an enum's.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no {1}")]
pub struct UnknownWord(pub String, pub &'static str);

impl From<UnknownWord> for crate::StoreError {
    fn from(error: UnknownWord) -> Self {
        Self::malformed(error)
    }
}

/// Gives an enum without fields its words: `stored!(pub(crate) Step: Queued = "queued", Done = "done")`. Rows read it with
/// `#[sqlx(try_from = "String")]`, and statements write its `as_str`, which is as visible as this says.
#[macro_export]
macro_rules! stored {
    ($visibility:vis $kind:ident: $($variant:ident = $word:literal),+ $(,)?) => {
        impl $kind {
            /// As rows have it.
            $visibility fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl TryFrom<String> for $kind {
            type Error = $crate::UnknownWord;

            fn try_from(word: String) -> Result<Self, $crate::UnknownWord> {
                match word.as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::UnknownWord(word, stringify!($kind))),
                }
            }
        }
    };
}
