//! The formats of documents: their names, their extensions, and the content type that `auto` stands for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A format of documents that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Portable Document Format.
    Pdf,
    /// Word 97 to 2003.
    Doc,
    /// Word, Office Open XML.
    Docx,
    /// PowerPoint 97 to 2003.
    Ppt,
    /// PowerPoint, Office Open XML.
    Pptx,
    /// Excel 97 to 2003.
    Xls,
    /// Excel, Office Open XML.
    Xlsx,
    /// An electronic book.
    Epub,
    /// Markdown.
    Markdown,
    /// A page of the Web.
    Html,
    /// Plain text.
    Text,
    /// Python.
    Python,
    /// JavaScript.
    JavaScript,
    /// Style sheets of the Web.
    Css,
    /// Values separated by commas, semicolons or tabs.
    Csv,
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// YAML.
    Yaml,
    /// A film, MPEG-4.
    Mp4,
    /// A film, QuickTime.
    Mov,
    /// A film, MPEG-4 as Apple names it.
    M4v,
    /// A film, Audio Video Interleave.
    Avi,
    /// Sound, MPEG layer 3.
    Mp3,
    /// Sound, RIFF.
    Wav,
    /// Sound, MPEG-4.
    M4a,
    /// A picture, JPEG.
    Jpeg,
    /// A picture, PNG.
    Png,
    /// A picture, TIFF.
    Tiff,
    /// A picture, GIF.
    Gif,
    /// A picture, WebP.
    WebP,
}

/// What a document is digitized by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Its text is read, by this crate.
    Text,
    /// It is looked at: this crate makes an image of it, which somebody recognizes text in.
    Picture,
    /// It is listened to, which is not done here.
    Sound,
    /// Its sound is listened to.
    Film,
}

/// The templates that a document may be rewritten by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// Anything short.
    Article,
    /// What was said.
    Video,
    /// Anything long.
    Book,
}

impl ContentType {
    /// What `auto` means for a document: `video` where the address is one of a video platform or the file is listened to,
    /// `book` for PDF, EPUB and Word, `article` for the rest.
    #[must_use]
    pub fn auto(format: Option<Format>, is_video_address: bool) -> Self {
        let Some(format) = format.filter(|_| !is_video_address) else {
            return if is_video_address {
                Self::Video
            } else {
                Self::Article
            };
        };
        match (format, format.medium()) {
            (_, Medium::Sound | Medium::Film) => Self::Video,
            (Format::Pdf | Format::Epub | Format::Doc | Format::Docx, _) => Self::Book,
            _ => Self::Article,
        }
    }
}

/// Every extension that is accepted, with its format, in lower case.
pub const EXTENSIONS: [(&str, Format); 35] = [
    ("pdf", Format::Pdf),
    ("doc", Format::Doc),
    ("docx", Format::Docx),
    ("ppt", Format::Ppt),
    ("pptx", Format::Pptx),
    ("xls", Format::Xls),
    ("xlsx", Format::Xlsx),
    ("epub", Format::Epub),
    ("md", Format::Markdown),
    ("markdown", Format::Markdown),
    ("html", Format::Html),
    ("htm", Format::Html),
    ("txt", Format::Text),
    ("py", Format::Python),
    ("js", Format::JavaScript),
    ("css", Format::Css),
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("xml", Format::Xml),
    ("yaml", Format::Yaml),
    ("yml", Format::Yaml),
    ("mp4", Format::Mp4),
    ("mov", Format::Mov),
    ("m4v", Format::M4v),
    ("avi", Format::Avi),
    ("mp3", Format::Mp3),
    ("wav", Format::Wav),
    ("m4a", Format::M4a),
    ("jpg", Format::Jpeg),
    ("jpeg", Format::Jpeg),
    ("png", Format::Png),
    ("tif", Format::Tiff),
    ("tiff", Format::Tiff),
    ("gif", Format::Gif),
    ("webp", Format::WebP),
];

/// Extensions of archives, which are never accepted.
const ARCHIVES: [&str; 8] = ["zip", "tar", "gz", "tgz", "rar", "7z", "bz2", "xz"];

/// What a file's name says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionKind {
    /// A format that is accepted.
    Format(Format),
    /// An archive.
    Archive,
    /// Something else, or nothing.
    Unknown,
}

/// What the extension of a name says.
#[must_use]
pub fn extension_kind(name: &str) -> ExtensionKind {
    let extension = extension(name);
    if ARCHIVES.contains(&extension.as_str()) {
        return ExtensionKind::Archive;
    }
    let known = EXTENSIONS
        .iter()
        .find(|(known, _)| !extension.is_empty() && *known == extension);
    known.map_or(ExtensionKind::Unknown, |(_, format)| {
        ExtensionKind::Format(*format)
    })
}

/// The extension of a name in lower case, without its dot; empty where it has none. A name that only begins with a dot has
/// none, and neither has a folder.
#[must_use]
pub fn extension(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
    match file.trim().rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension.to_ascii_lowercase(),
        _ => String::new(),
    }
}

impl Format {
    /// How it is digitized.
    #[must_use]
    pub fn medium(self) -> Medium {
        match self {
            Self::Mp4 | Self::Mov | Self::M4v | Self::Avi => Medium::Film,
            Self::Mp3 | Self::Wav | Self::M4a => Medium::Sound,
            Self::Jpeg | Self::Png | Self::Tiff | Self::Gif | Self::WebP => Medium::Picture,
            _ => Medium::Text,
        }
    }

    /// Whether it is characters and nothing else.
    #[must_use]
    pub fn is_characters(self) -> bool {
        matches!(
            self,
            Self::Markdown
                | Self::Html
                | Self::Text
                | Self::Python
                | Self::JavaScript
                | Self::Css
                | Self::Csv
                | Self::Json
                | Self::Xml
                | Self::Yaml
        )
    }

    /// The format of an extension, without its dot.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        match extension_kind(&format!("x.{extension}")) {
            ExtensionKind::Format(format) => Some(format),
            ExtensionKind::Archive | ExtensionKind::Unknown => None,
        }
    }

    /// The extension that stands for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let first = EXTENSIONS.iter().find(|(_, format)| *format == self);
        first.map_or("", |(extension, _)| extension)
    }

    /// Its media type, as downloads name it.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Doc => "application/msword",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            Self::Ppt => "application/vnd.ms-powerpoint",
            Self::Pptx => {
                "application/vnd.openxmlformats-officedocument.presentationml.presentation"
            }
            Self::Xls => "application/vnd.ms-excel",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Epub => "application/epub+zip",
            Self::Markdown => "text/markdown",
            Self::Html => "text/html",
            Self::Text => "text/plain",
            Self::Python => "text/x-python",
            Self::JavaScript => "text/javascript",
            Self::Css => "text/css",
            Self::Csv => "text/csv",
            Self::Json => "application/json",
            Self::Xml => "application/xml",
            Self::Yaml => "application/yaml",
            Self::Mp4 | Self::M4v => "video/mp4",
            Self::Mov => "video/quicktime",
            Self::Avi => "video/x-msvideo",
            Self::Mp3 => "audio/mpeg",
            Self::Wav => "audio/wav",
            Self::M4a => "audio/mp4",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Tiff => "image/tiff",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }
}

/// Names that others give media types of ours, and what servers say of files by their extension.
const OTHER_MEDIA_TYPES: [(&str, Format); 14] = [
    ("application/xhtml+xml", Format::Html),
    ("text/xml", Format::Xml),
    ("text/yaml", Format::Yaml),
    ("application/x-yaml", Format::Yaml),
    ("application/javascript", Format::JavaScript),
    ("audio/mp3", Format::Mp3),
    ("audio/x-wav", Format::Wav),
    ("audio/wave", Format::Wav),
    ("audio/vnd.wave", Format::Wav),
    ("audio/x-m4a", Format::M4a),
    ("audio/m4a", Format::M4a),
    ("video/x-m4v", Format::M4v),
    ("video/avi", Format::Avi),
    ("image/jpg", Format::Jpeg),
];

impl Format {
    /// The format of a media type without parameters, in lower case.
    #[must_use]
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let own = EXTENSIONS.iter().map(|(_, format)| *format);
        let mut own = own.filter(|format| format.media_type() == media_type);
        own.next().or_else(|| {
            let others = OTHER_MEDIA_TYPES.iter();
            let mut others = others.filter(|(other, _)| *other == media_type);
            others.next().map(|(_, format)| *format)
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pdf => "PDF",
            Self::Doc => "Word 97-2003 (DOC)",
            Self::Docx => "Word (DOCX)",
            Self::Ppt => "PowerPoint 97-2003 (PPT)",
            Self::Pptx => "PowerPoint (PPTX)",
            Self::Xls => "Excel 97-2003 (XLS)",
            Self::Xlsx => "Excel (XLSX)",
            Self::Epub => "EPUB",
            Self::Markdown => "Markdown",
            Self::Html => "HTML",
            Self::Text => "plain text",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::Css => "CSS",
            Self::Csv => "CSV",
            Self::Json => "JSON",
            Self::Xml => "XML",
            Self::Yaml => "YAML",
            Self::Mp4 => "MP4",
            Self::Mov => "QuickTime",
            Self::M4v => "M4V",
            Self::Avi => "AVI",
            Self::Mp3 => "MP3",
            Self::Wav => "WAV",
            Self::M4a => "M4A",
            Self::Jpeg => "JPEG",
            Self::Png => "PNG",
            Self::Tiff => "TIFF",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (extension, format) in EXTENSIONS {
            for name in [
                format!("a.{extension}"),
                format!("/b/c.d/a.{}", extension.to_uppercase()),
                format!("C:\\x\\a.b.{extension} "),
            ] {
                assert_eq!(
                    extension_kind(&name),
                    ExtensionKind::Format(format),
                    "{name}"
                );
            }
        }
        for archive in ARCHIVES {
            assert_eq!(
                extension_kind(&format!("a.pdf.{archive}")),
                ExtensionKind::Archive
            );
        }
        for unknown in ["", "pdf", ".pdf", "a.", "a.exe", "a.pdf/b", "a.docm"] {
            assert_eq!(extension_kind(unknown), ExtensionKind::Unknown, "{unknown}");
        }
    }

    #[test]
    fn media_types_tell_formats() {
        for (extension, format) in EXTENSIONS {
            let told = Format::of_media_type(format.media_type());
            let told = told.map(Format::media_type);
            assert_eq!(told, Some(format.media_type()), "{extension}");
        }
        assert_eq!(Format::of_media_type("video/mp4"), Some(Format::Mp4));
        assert_eq!(Format::of_media_type("audio/x-wav"), Some(Format::Wav));
        assert_eq!(Format::of_media_type("application/octet-stream"), None);
        assert_eq!(Format::of_media_type(""), None);
    }

    #[test]
    fn auto_depends_on_where_a_document_comes_from() {
        use ContentType as Type;
        let auto = |name: &str| ContentType::auto(Format::of_extension(name), false);
        for book in ["pdf", "epub", "doc", "docx"] {
            assert_eq!(auto(book), Type::Book, "{book}");
        }
        for video in ["mp3", "wav", "m4a", "mp4", "mov", "m4v", "avi"] {
            assert_eq!(auto(video), Type::Video, "{video}");
        }
        for article in ["pptx", "xls", "html", "md", "txt", "json", "png", ""] {
            assert_eq!(auto(article), Type::Article, "{article}");
        }
        assert_eq!(ContentType::auto(None, true), Type::Video);
        assert_eq!(ContentType::auto(Some(Format::Html), true), Type::Video);
    }
}
