//! Code pages of Windows, which older documents name by their numbers.

use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS};

/// The encoding of a code page, where it is one of Windows'.
pub(super) fn encoding(code_page: i64) -> Option<&'static Encoding> {
    match code_page {
        932 => Some(SHIFT_JIS),
        936 => Some(GBK),
        949 => Some(EUC_KR),
        950 => Some(BIG5),
        other => Encoding::for_label(format!("windows-{other}").as_bytes()),
    }
}
