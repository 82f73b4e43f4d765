//! Code pages of Windows, which older documents name by their numbers.

use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, MACINTOSH, SHIFT_JIS};

/// The encoding of a code page, where it is one of Windows', or that of Macintosh, for which Excel has a number of its own.
pub(super) fn encoding(code_page: i64) -> Option<&'static Encoding> {
    match code_page {
        932 => Some(SHIFT_JIS),
        936 => Some(GBK),
        949 => Some(EUC_KR),
        950 => Some(BIG5),
        10_000 | 32_768 => Some(MACINTOSH),
        other => Encoding::for_label(format!("windows-{other}").as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{WINDOWS_874, WINDOWS_1252};

    use super::*;

    #[test]
    fn numbers_name_encodings() {
        for (code_page, encoding_of_it) in [
            (874, Some(WINDOWS_874)),
            (932, Some(SHIFT_JIS)),
            (1252, Some(WINDOWS_1252)),
            (10_000, Some(MACINTOSH)),
            (32_768, Some(MACINTOSH)),
            (437, None),
            (-1, None),
        ] {
            assert_eq!(encoding(code_page), encoding_of_it, "{code_page}");
        }
    }
}
