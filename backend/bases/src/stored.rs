//! Enums as the database has them: words.

/// A word of the database is none of an enum's.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no {1}")]
pub(crate) struct UnknownWord(pub(crate) String, pub(crate) &'static str);

/// Gives an enum without fields its words.
macro_rules! stored {
    ($kind:ident: $($variant:ident = $word:literal),+ $(,)?) => {
        impl $kind {
            /// As rows have it.
            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl TryFrom<String> for $kind {
            type Error = $crate::stored::UnknownWord;

            fn try_from(word: String) -> Result<Self, Self::Error> {
                match word.as_str() {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::stored::UnknownWord(word, stringify!($kind))),
                }
            }
        }
    };
}

pub(crate) use stored;
