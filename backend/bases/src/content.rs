//! The contents of documents, in their variants.

use bytes::Bytes;
use colloquy_accounts::Tenant;
use colloquy_blobs::{BlobKey, Written};
use colloquy_digitize::Format;
use colloquy_store::{StoreError, Transaction, stored};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::{Bases, error::BaseError, store};

/// A variant of the content of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Variant {
    /// What was brought.
    Original,
    /// Its text, while it is not accepted yet.
    #[serde(skip)]
    Extracted,
    /// Its text.
    Digitized,
    /// What a model made of the text, and is not final.
    Draft,
    /// What is searched.
    Rewritten,
}

stored!(pub(crate) Variant: Original = "original", Extracted = "extracted", Digitized = "digitized", Draft = "draft", Rewritten = "rewritten");

/// What is known of a content.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Content {
    pub(crate) document_id: String,
    #[sqlx(try_from = "String")]
    pub(crate) variant: Variant,
    pub(crate) blob: BlobKey,
    pub(crate) file_name: String,
    pub(crate) media_type: String,
    pub(crate) bytes: i64,
    /// Of text.
    pub(crate) characters: Option<i64>,
    pub(crate) sha256: String,
    pub(crate) updated_at: i64,
    /// Of the document, when it was stored.
    pub(crate) revision: i64,
    /// The source of an original or a text, as in [`NewContent::made_of`]. A text that somebody wrote keeps that of the text before it.
    pub(crate) made_of: Option<String>,
}

impl Content {
    /// The encoding of its text, where it came with one.
    pub(crate) fn charset(&self) -> Option<&str> {
        charset(&self.media_type)
    }

    /// Whether it is characters and nothing else, by its name.
    pub(crate) fn is_characters(&self) -> bool {
        let extension = self.file_name.rsplit('.').next().unwrap_or_default();
        Format::of_extension(extension).is_some_and(Format::is_characters)
    }

    /// The media type alone.
    pub(crate) fn essence(&self) -> &str {
        self.media_type.split(';').next().unwrap_or_default().trim()
    }
}

/// The parameter `charset` of a media type.
pub(crate) fn charset(media_type: &str) -> Option<&str> {
    let mut parameters = media_type.split(';').skip(1);
    parameters.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    })
}

/// A file that is about to become a content.
#[derive(Debug, Clone)]
pub(crate) struct NewContent {
    pub(crate) variant: Variant,
    pub(crate) written: Written,
    pub(crate) file_name: String,
    /// With the encoding of its text, where that is known.
    pub(crate) media_type: String,
    /// Of text.
    pub(crate) characters: Option<u64>,
    /// The address that gave an original; the SHA-256 of the original that a text was read from, or the address that gave the text itself.
    /// `None` for what somebody brought.
    pub(crate) made_of: Option<String>,
}

impl NewContent {
    /// A text, written and not referred to yet.
    pub(crate) async fn of_text(
        bases: &Bases,
        tenant: &Tenant,
        variant: Variant,
        file_name: String,
        text: String,
    ) -> Result<Self, BaseError> {
        let characters = text.chars().count();
        let bytes = Bytes::from(text);
        let written = bases.blobs.write_bytes(tenant.partner(), bytes).await?;
        Ok(Self::written(variant, written, file_name, characters))
    }

    /// Like [`Self::of_text`], for a text that was paid for: the limit of the partner's storage does not refuse it.
    pub(crate) async fn of_paid_text(
        bases: &Bases,
        tenant: &Tenant,
        variant: Variant,
        file_name: String,
        text: String,
    ) -> Result<Self, BaseError> {
        let characters = text.chars().count();
        let bytes = Bytes::from(text);
        let written = bases.blobs.write_paid(tenant.partner(), bytes).await?;
        Ok(Self::written(variant, written, file_name, characters))
    }

    fn written(variant: Variant, written: Written, file_name: String, characters: usize) -> Self {
        Self {
            variant,
            written,
            file_name,
            media_type: "text/markdown".to_owned(),
            characters: Some(u64::try_from(characters).unwrap_or(u64::MAX)),
            made_of: None,
        }
    }

    /// Puts it in the place of what the document had, in a transaction.
    pub(crate) async fn store(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        document: &str,
    ) -> Result<(), StoreError> {
        bases.blobs.keep(transaction, &self.written).await?;
        let old = store::blob_of(transaction, document, self.variant).await?;
        let now = bases.clock.now_ms();
        store::put_content(transaction, document, self, now).await?;
        bases.blobs.doom(transaction, old.as_slice()).await
    }
}

/// Returns the content of a variant.
pub(crate) fn of_variant(contents: &[Content], variant: Variant) -> Option<&Content> {
    contents.iter().find(|content| content.variant == variant)
}

/// The text of a content, `most` bytes of it.
pub(crate) async fn text(bases: &Bases, content: &Content, most: u64) -> Result<String, BaseError> {
    let bytes = bases.blobs.read_whole(&content.blob, most).await?;
    // What was brought may be anything.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of an original that is characters in another encoding than UTF-8, `most` bytes of it.
pub(crate) async fn decoded(
    bases: &Bases,
    content: &Content,
    most: u64,
) -> Result<String, BaseError> {
    let bytes = bases.blobs.read_whole(&content.blob, most).await?;
    let charset = content.charset().map(str::to_owned);
    let decode = move || colloquy_extract::decode(&bytes, charset.as_deref());
    Ok(spawn_blocking(decode).await?)
}

#[cfg(test)]
mod tests {
    use super::charset;

    #[test]
    fn a_media_type_may_name_an_encoding() {
        for (media_type, expected) in [
            ("text/html; charset=iso-8859-1", Some("iso-8859-1")),
            ("text/html;a=b; Charset=\"utf-8\"", Some("utf-8")),
            ("text/html; charset=", None),
            ("text/html", None),
            ("", None),
        ] {
            assert_eq!(charset(media_type), expected, "{media_type}");
        }
    }
}
