//! Text of layouts and masters of slides.

use colloquy_extract::{Format, Options, extract};

use super::made::{placeholder, pptx, relation, relations, slide};

/// A shape that is no placeholder.
fn shape(text: &str) -> String {
    format!("<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>")
}

/// Two layouts, each with a master of its own.
fn templates(first_layout: &str) -> Vec<(String, String)> {
    let mut files = vec![];
    for (number, layout) in [(1, first_layout), (2, "")] {
        let layout_shapes = placeholder("body", &["Edit the text"]) + layout;
        let master_shapes = placeholder("title", &["Click to edit"])
            + &shape(["Acme in Bonn", "Beta in Rome"][number - 1]);
        let master = format!("../slideMasters/slideMaster{number}.xml");
        files.extend([
            (
                format!("ppt/slideLayouts/slideLayout{number}.xml"),
                slide("sldLayout", &layout_shapes),
            ),
            (
                format!("ppt/slideLayouts/_rels/slideLayout{number}.xml.rels"),
                relations(&relation("r1", "slideMaster", &master)),
            ),
            (
                format!("ppt/slideMasters/slideMaster{number}.xml"),
                slide("sldMaster", &master_shapes),
            ),
        ]);
    }
    files
}

/// The text of slides, each with its shapes and the number of its layout.
fn read(slides: &[(&str, u32)], templates: &[(String, String)]) -> String {
    let related = slides.iter().map(|(_, layout)| {
        let target = format!("../slideLayouts/slideLayout{layout}.xml");
        relation("r1", "slideLayout", &target)
    });
    let related: Vec<String> = related.collect();
    let slides = slides.iter().zip(&related);
    let slides: Vec<(&str, &str)> = slides
        .map(|((shapes, _), related)| (*shapes, related.as_str()))
        .collect();
    let files = templates.iter();
    let files: Vec<(&str, &[u8])> = files
        .map(|(name, xml)| (name.as_str(), xml.as_bytes()))
        .collect();
    let deck = pptx(&slides, &files);
    extract(&deck, Format::Pptx, &Options::default())
        .unwrap()
        .markdown
}

#[test]
fn slides_without_words_show_the_text_of_their_own_templates() {
    let templates = templates(&shape("Welcome"));
    let (empty, titled) = (placeholder("title", &[]), placeholder("title", &["Hours"]));
    let (empty, titled) = (empty.as_str(), titled.as_str());
    for (slides, expected) in [
        (
            vec![(empty, 1), (titled, 2), (empty, 1)],
            "Welcome\n\nAcme in Bonn\n\n# Hours\n",
        ),
        (vec![(titled, 1), (empty, 2)], "# Hours\n\nBeta in Rome\n"),
        (
            vec![(empty, 2), (titled, 1), (empty, 1)],
            "Beta in Rome\n\n# Hours\n\nWelcome\n\nAcme in Bonn\n",
        ),
        (vec![(titled, 1)], "# Hours\n"),
    ] {
        assert_eq!(read(&slides, &templates), expected);
    }
}

#[test]
fn a_layout_may_hide_the_text_of_its_master() {
    let mut templates = templates(&shape("Welcome"));
    templates[0].1 = templates[0]
        .1
        .replace("<p:sldLayout ", "<p:sldLayout showMasterSp=\"0\" ");
    let empty = placeholder("title", &[]);
    assert_eq!(read(&[(&empty, 1)], &templates), "Welcome\n");
}
