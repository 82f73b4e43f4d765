//! Drawings on the sheets of a workbook: the text in their shapes, their charts and their diagrams, in the order of the file. Text in shapes
//! within a chart, and in layouts and masters of slides, likewise.
//! Source: ECMA-376 part 1, sections 20.5 (SpreadsheetML drawings) and 21.3 (chart drawings).

use quick_xml::events::Event;

use super::{
    chart, diagram, events,
    relations::{self, value},
};
use crate::{error::ExtractError, limits::Bounds, markdown::escaped, package::Package};

/// What a drawing holds.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// Paragraphs of a shape.
    Text(String),
    /// A part, by its identifier.
    Part(String),
}

/// The part of each sheet, and its drawings in Markdown, in the order of the workbook. `cells` counts those of charts.
pub(super) fn of_sheets(
    package: &mut Package<'_>,
    workbook: &str,
    bounds: &Bounds,
    cells: &mut usize,
) -> Result<Vec<(String, String)>, ExtractError> {
    const WORKBOOK: &str = "xl/workbook.xml";
    let named = relations::by_id(relations::of(package, WORKBOOK)?);
    let mut all = vec![];
    for (_, sheet) in sheets(workbook) {
        let (mut part, mut markdown) = (String::new(), String::new());
        if let Some(sheet) = named.get(&sheet) {
            part.clone_from(&sheet.target);
            for related in relations::of(package, &sheet.target)? {
                if related.kind == "drawing" {
                    add(package, &related.target, bounds, cells, &mut markdown)?;
                }
            }
        }
        all.push((part, markdown));
    }
    Ok(all)
}

/// The sheets of a workbook that have a name: it, and the identifier of the part.
pub(super) fn sheets(workbook: &str) -> Vec<(String, String)> {
    let of = |event| match event {
        Event::Start(start) | Event::Empty(start) if start.name().as_ref() == "sheet" => {
            let name = value(&start, "name").filter(|name| !name.is_empty())?;
            Some((name, value(&start, "id").unwrap_or_default()))
        }
        _ => None,
    };
    events(workbook).filter_map(of).collect()
}

/// Adds what a drawing holds.
fn add(
    package: &mut Package<'_>,
    part: &str,
    bounds: &Bounds,
    cells: &mut usize,
    markdown: &mut String,
) -> Result<(), ExtractError> {
    let Some(xml) = package.read_xml(part)? else {
        return Ok(());
    };
    let mut named = relations::by_id(relations::of(package, part)?);
    for piece in pieces(&xml) {
        let text = match piece {
            Piece::Text(text) => text,
            Piece::Part(id) => match named.remove(&id) {
                Some(related) => shown(package, &related, bounds, cells)?,
                None => continue,
            },
        };
        markdown.push_str(text.trim_end());
        markdown.push_str("\n\n");
    }
    Ok(())
}

/// What a chart or a diagram shows, and the text that somebody drew in a chart; nothing for other parts.
pub(super) fn shown(
    package: &mut Package<'_>,
    related: &relations::Relation,
    bounds: &Bounds,
    cells: &mut usize,
) -> Result<String, ExtractError> {
    let is_chart = related.kind == "chart";
    if !is_chart && related.kind != "diagramData" {
        return Ok(String::new());
    }
    let xml = package.read_xml(&related.target)?.unwrap_or_default();
    if !is_chart {
        return Ok(diagram::list(&xml));
    }
    let mut text = chart::table(&xml, cells, bounds.cells)?;
    for drawn in relations::of(package, &related.target)? {
        if drawn.kind == "chartUserShapes" {
            let xml = package.read_xml(&drawn.target)?.unwrap_or_default();
            text.extend(texts(&xml).map(|words| format!("\n\n{words}\n")));
        }
    }
    Ok(text)
}

/// The texts in the shapes of a drawing, a layout or a master, but for those of placeholders.
pub(super) fn texts(drawing: &str) -> impl Iterator<Item = String> {
    pieces(drawing).into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Part(_) => None,
    })
}

fn pieces(drawing: &str) -> Vec<Piece> {
    let mut pieces = vec![];
    let (mut shape, mut line) = (String::new(), String::new());
    // Inside of how many bodies of text, and of branches that stand in for others.
    let (mut bodies, mut stand_ins) = (0_usize, 0_usize);
    let (mut in_text, mut is_placeholder) = (false, false);
    for event in events(drawing) {
        match event {
            Event::Start(start) if start.local_name().as_ref() == "Fallback" => stand_ins += 1,
            Event::End(end) if end.local_name().as_ref() == "Fallback" => {
                stand_ins = stand_ins.saturating_sub(1);
            }
            _ if stand_ins > 0 => {}
            Event::Start(start) | Event::Empty(start)
                if matches!(start.local_name().as_ref(), "chart" | "relIds") =>
            {
                let id = value(&start, "dm").or_else(|| value(&start, "id"));
                pieces.extend(id.map(Piece::Part));
            }
            Event::Start(start) | Event::Empty(start) if start.local_name().as_ref() == "ph" => {
                is_placeholder = true;
            }
            Event::Start(start) => match start.local_name().as_ref() {
                "sp" | "graphicFrame" => is_placeholder = false,
                "txBody" => bodies += 1,
                "t" => in_text = bodies > 0,
                _ => {}
            },
            Event::Empty(start) if start.local_name().as_ref() == "br" => line.push(' '),
            Event::Text(text) if in_text => line.push_str(&text),
            Event::GeneralRef(reference) if in_text => super::push_reference(&mut line, &reference),
            Event::End(end) => match end.local_name().as_ref() {
                "t" => in_text = false,
                "p" => {
                    shape.push_str(&escaped(line.trim()));
                    shape.push('\n');
                    line.clear();
                }
                "txBody" => {
                    bodies = bodies.saturating_sub(1);
                    let text = std::mem::take(&mut shape).trim().replace('\n', "\n\n");
                    if !text.is_empty() && !is_placeholder {
                        pieces.push(Piece::Text(text));
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_text_and_frames_have_parts() {
        let shape = |text: &str| {
            format!(
                "<xdr:sp><xdr:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r><a:br/><a:r><a:t>go on</a:t></a:r></a:p><a:p/></xdr:txBody></xdr:sp>"
            )
        };
        let drawing = format!(
            r#"<xdr:wsDr><xdr:grpSp>{0}</xdr:grpSp><mc:AlternateContent><mc:Choice><a:graphicData><c:chart r:id="r1"/></a:graphicData></mc:Choice><mc:Fallback>{0}</mc:Fallback></mc:AlternateContent>{1}<dgm:relIds r:dm="r2" r:lo="r3"/></xdr:wsDr>"#,
            shape("Read &lt;me&gt;,"),
            "<p:sp><p:nvPr><p:ph/></p:nvPr><p:txBody><a:p><a:t>prompt</a:t></a:p></p:txBody></p:sp>"
        );
        let text = Piece::Text("Read \\<me>, go on".to_owned());
        let parts = ["r1", "r2"].map(|id| Piece::Part(id.to_owned()));
        let [chart, diagram] = parts;
        assert_eq!(pieces(&drawing), [text, chart, diagram]);
    }
}
