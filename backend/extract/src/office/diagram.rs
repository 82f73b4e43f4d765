//! SmartArt as a list: the texts of its shapes, below each other as the shapes are. Source: ECMA-376 part 1, section 21.4.2
//! (data model).

use std::collections::{HashMap, HashSet};

use quick_xml::events::Event;

use super::{events, relations::value};
use crate::markdown::escaped;

/// How deep lists are shown; what is deeper stands at this depth.
const DEEPEST: usize = 8;

/// The points of a diagram and what is below them.
#[derive(Debug, Default)]
struct Model {
    /// Identifiers in the order of the file.
    order: Vec<String>,
    texts: HashMap<String, String>,
    /// What is below a point, each with its place among the others.
    below: HashMap<String, Vec<(u32, String)>>,
    /// The point that stands for the document.
    root: Option<String>,
}

/// The list that a diagram's data is.
pub(super) fn list(data: &str) -> String {
    let mut model = read(data);
    let mut list = String::new();
    let mut written = HashSet::new();
    let mut open: Vec<(String, usize)> = model
        .root
        .take()
        .map(|root| (root, 0))
        .into_iter()
        .collect();
    while let Some((point, depth)) = open.pop() {
        if !written.insert(point.clone()) {
            continue;
        }
        let shown = item(&mut list, model.texts.get(&point), depth);
        let mut below = model.below.remove(&point).unwrap_or_default();
        below.sort_by_key(|(place, _)| *place);
        let deeper = (depth + usize::from(shown)).min(DEEPEST);
        open.extend(below.into_iter().rev().map(|(_, point)| (point, deeper)));
    }
    // Shapes that stand below none.
    for point in model.order {
        if !written.contains(&point) {
            item(&mut list, model.texts.get(&point), 0);
        }
    }
    list
}

/// Adds an item where there is text; whether there was.
fn item(list: &mut String, text: Option<&String>, depth: usize) -> bool {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return false;
    };
    list.push_str(&format!("{}- {}\n", "  ".repeat(depth), escaped(text)));
    true
}

fn read(data: &str) -> Model {
    let mut model = Model::default();
    let mut point: Option<String> = None;
    let mut in_text = false;
    let mut text = String::new();
    for event in events(data) {
        match event {
            Event::Start(start) => match start.local_name().as_ref() {
                "pt" => {
                    let id = value(&start, "modelId").unwrap_or_default();
                    match value(&start, "type").as_deref() {
                        Some("doc") => model.root = Some(id),
                        None | Some("node" | "asst") => point = Some(id),
                        Some(_) => {}
                    }
                }
                "t" => in_text = true,
                "cxn" => connect(&mut model, &start),
                _ => {}
            },
            Event::Empty(start) => match start.local_name().as_ref() {
                "pt" if value(&start, "type").as_deref() == Some("doc") => {
                    model.root = value(&start, "modelId");
                }
                "cxn" => connect(&mut model, &start),
                "br" => text.push(' '),
                _ => {}
            },
            Event::Text(part) if in_text && point.is_some() => text.push_str(&part),
            Event::GeneralRef(reference) if in_text && point.is_some() => {
                super::push_reference(&mut text, &reference);
            }
            Event::End(end) => match end.local_name().as_ref() {
                "t" => in_text = false,
                "p" => text.push(' '),
                "pt" => {
                    let words: Vec<&str> = text.split_whitespace().collect();
                    if let Some(point) = point.take() {
                        model.texts.insert(point.clone(), words.join(" "));
                        model.order.push(point);
                    }
                    text.clear();
                }
                _ => {}
            },
            _ => {}
        }
    }
    model
}

fn connect(model: &mut Model, connection: &quick_xml::events::BytesStart<'_>) {
    let of = |name: &str| value(connection, name);
    if of("type").is_none_or(|kind| kind == "parOf")
        && let (Some(from), Some(to)) = (of("srcId"), of("destId"))
    {
        let place = of("srcOrd").and_then(|place| place.parse().ok());
        let below = model.below.entry(from).or_default();
        below.push((place.unwrap_or(u32::MAX), to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_become_items_below_each_other() {
        let point = |id: &str, text: &str| {
            format!(
                r#"<dgm:pt modelId="{id}"><dgm:prSet/><dgm:t><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>"#
            )
        };
        let data = format!(
            r#"<dgm:dataModel><dgm:ptLst><dgm:pt modelId="0" type="doc"><dgm:t><a:p/></dgm:t></dgm:pt>{}{}{}{}<dgm:pt modelId="9" type="sibTrans"><dgm:t><a:p><a:t>no</a:t></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:cxnLst><dgm:cxn modelId="a" srcId="0" destId="2" srcOrd="1"/><dgm:cxn modelId="b" srcId="0" destId="1" srcOrd="0"/><dgm:cxn modelId="c" srcId="1" destId="3" srcOrd="0"/><dgm:cxn modelId="d" srcId="3" destId="1" srcOrd="0"/><dgm:cxn modelId="e" type="presOf" srcId="2" destId="1" srcOrd="0"/></dgm:cxnLst></dgm:dataModel>"#,
            point("1", "Plan &amp; build"),
            point("2", "Run"),
            point("3", "Draw"),
            point("4", "Alone"),
        );
        assert_eq!(list(&data), "- Plan & build\n  - Draw\n- Run\n- Alone\n");
        assert_eq!(list("<dgm:dataModel>"), "");
    }
}
