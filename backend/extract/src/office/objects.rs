//! Objects of other programs inside of a document, such as a sheet inside of a Word document, and the pictures that are shown in their
//! place. Source: ECMA-376 part 1, sections 17.3.3.19 (`object`) and 19.3.2.4 (`oleObj`).

use std::collections::HashSet;

use quick_xml::events::{BytesStart, Event};

use super::{
    events,
    relations::{Relation, value},
};

/// True for a relation to an object of another program, or to a chart of a kind that Office has had since 2016, such as a waterfall.
pub(super) fn is_object(relation: &Relation) -> bool {
    matches!(relation.kind.as_str(), "oleObject" | "package" | "chartEx")
}

/// The names of pictures in a part that are shown in the place of its objects, and nowhere else in it. What stands for a link to an object
/// outside of the document is a picture like others.
pub(super) fn previews(xml: &str, relations: &[Relation]) -> HashSet<String> {
    let objects = relations.iter().filter(|one| is_object(one));
    let objects: HashSet<&str> = objects.map(|one| one.id.as_str()).collect();
    let is_named =
        |start: &BytesStart<'_>| value(start, "id").is_some_and(|id| objects.contains(id.as_str()));
    let (mut previews, mut others) = (HashSet::<String>::new(), HashSet::<String>::new());
    // Inside of how many frames of objects, what these show, and whether one of them is of the document.
    let (mut frames, mut shown, mut has_object) = (0_usize, Vec::<String>::new(), false);
    for event in events(xml) {
        let (start, opens) = match event {
            Event::Start(start) => (start, true),
            Event::Empty(start) => (start, false),
            Event::End(end) if matches!(end.local_name().as_ref(), "object" | "oleObj") => {
                frames = frames.saturating_sub(1);
                if frames == 0 {
                    let shown = std::mem::take(&mut shown);
                    match std::mem::take(&mut has_object) {
                        true => previews.extend(shown),
                        false => others.extend(shown),
                    }
                }
                continue;
            }
            _ => continue,
        };
        let picture = match start.local_name().as_ref() {
            "object" => {
                frames += usize::from(opens);
                None
            }
            "oleObj" => {
                frames += usize::from(opens);
                has_object |= frames > 0 && is_named(&start);
                None
            }
            "OLEObject" => {
                has_object |= frames > 0 && is_named(&start);
                None
            }
            "blip" => value(&start, "embed"),
            "imagedata" => value(&start, "id"),
            _ => None,
        };
        match frames {
            0 => others.extend(picture),
            _ => shown.extend(picture),
        }
    }
    previews.retain(|id| !others.contains(id));
    previews
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_are_the_pictures_of_objects_of_the_document() {
        let relation = |id: &str, kind: &str| Relation {
            id: id.to_owned(),
            kind: kind.to_owned(),
            target: String::new(),
        };
        let relations = [
            relation("o1", "oleObject"),
            relation("o2", "package"),
            relation("c1", "control"),
        ];
        let object = |picture: &str, id: &str| {
            format!(
                r#"<w:object><v:shape><v:imagedata r:id="{picture}"/></v:shape><o:OLEObject r:id="{id}"/></w:object>"#
            )
        };
        let word = [
            object("p1", "o1"),
            // A link, a control, and pictures that are shown elsewhere, too.
            object("p2", "elsewhere"),
            r#"<w:object><v:imagedata r:id="p3"/><w:control r:id="c1"/></w:object>"#.to_owned(),
            object("p4", "o2"),
            r#"<w:drawing><a:blip r:embed="p4"/><a:blip r:embed="p5"/></w:drawing>"#.to_owned(),
        ];
        let of = |xml: &str| {
            let mut previews: Vec<String> = previews(xml, &relations).into_iter().collect();
            previews.sort_unstable();
            previews
        };
        assert_eq!(of(&word.concat()), ["p1"]);
        let slide = r#"<mc:Choice><p:oleObj r:id="o2"><p:embed/></p:oleObj></mc:Choice><mc:Fallback><p:oleObj r:id="o2"><p:embed/><p:pic><a:blip r:embed="p1"/></p:pic></p:oleObj></mc:Fallback><p:oleObj r:id="o1"/><p:pic><a:blip r:embed="p2"/></p:pic>"#;
        assert_eq!(of(slide), ["p1"]);
    }
}
