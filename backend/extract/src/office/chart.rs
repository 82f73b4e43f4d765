//! Charts as tables of what they show, with their titles. Source: ECMA-376 part 1, section 21.2.2 (DrawingML charts).

use std::collections::{BTreeMap, BTreeSet};

use quick_xml::events::Event;

use super::{
    events,
    number_format::{NumberFormat, shortest},
    relations::value,
};
use crate::{
    error::{Bound, ExtractError},
    markdown::{Table, escaped},
};

/// Values by their places.
type Points = BTreeMap<u32, String>;

/// A chart.
#[derive(Debug, Default)]
struct Chart {
    /// How it is drawn, such as `bar`.
    kind: Option<String>,
    title: String,
    series: Vec<Series>,
}

#[derive(Debug, Default)]
struct Series {
    name: String,
    categories: Points,
    values: Points,
}

/// A chart in Markdown: its kind and title, and a table whose rows are its categories. `cells` counts those of all tables.
pub(super) fn table(xml: &str, cells: &mut usize, most: usize) -> Result<String, ExtractError> {
    let chart = read(xml);
    let mut text = match (&chart.kind, chart.title.trim()) {
        (None, title) => escaped(title),
        (Some(kind), "") => format!("{kind} chart"),
        (Some(kind), title) => format!("{kind} chart: {}", escaped(title)),
    };
    if text.is_empty() {
        return Ok(text);
    }
    text.push_str("\n\n");
    let all = |points: fn(&Series) -> &Points| {
        chart.series.iter().flat_map(move |one| points(one).keys())
    };
    let places: BTreeSet<u32> = all(|one| &one.values)
        .chain(all(|one| &one.categories))
        .copied()
        .collect();
    *cells = cells.saturating_add(places.len().saturating_mul(chart.series.len() + 1));
    if *cells > most {
        return Err(ExtractError::too_large(Bound::Cells, most));
    }
    if places.is_empty() {
        return Ok(text);
    }
    let mut table = Table::new(chart.series.len() + 1);
    let names: Vec<String> = chart
        .series
        .iter()
        .map(|one| escaped(one.name.trim()))
        .collect();
    table.row(
        &mut text,
        std::iter::once("").chain(names.iter().map(String::as_str)),
    );
    for place in places {
        let category = chart
            .series
            .iter()
            .find_map(|one| one.categories.get(&place));
        // A category that is not named has its number.
        let category = category.map_or_else(
            || (u64::from(place) + 1).to_string(),
            |one| escaped(one.trim()),
        );
        let values = chart
            .series
            .iter()
            .map(|one| one.values.get(&place).map_or("", String::as_str));
        table.row(&mut text, std::iter::once(category.as_str()).chain(values));
    }
    Ok(text)
}

/// True for the part of a chart.
pub(super) fn is_chart(xml: &str) -> bool {
    let opened = events(xml).find_map(|event| match event {
        Event::Start(start) | Event::Empty(start) => {
            Some(start.local_name().as_ref() == "chartSpace")
        }
        _ => None,
    });
    opened.unwrap_or(false)
}

fn read(xml: &str) -> Chart {
    let mut chart = Chart::default();
    let mut open: Vec<String> = vec![];
    let mut place = 0;
    let (mut text, mut format) = (String::new(), String::new());
    for event in events(xml) {
        match event {
            Event::Start(start) => {
                let name = start.local_name().as_ref().to_owned();
                match name.as_str() {
                    "ser" => chart.series.push(Series::default()),
                    "pt" => {
                        place = value(&start, "idx")
                            .and_then(|place| place.parse().ok())
                            .unwrap_or_default()
                    }
                    "numCache" | "strCache" => format.clear(),
                    "v" | "t" | "formatCode" => text.clear(),
                    _ => {
                        if let Some(kind) = kind_of(&name)
                            && chart.kind.is_none()
                        {
                            chart.kind = Some(kind);
                        }
                    }
                }
                open.push(name);
            }
            Event::Text(part) => text.push_str(&part),
            Event::GeneralRef(reference) => super::push_reference(&mut text, &reference),
            Event::End(_) => {
                let Some(name) = open.pop() else { continue };
                let within = |name: &str| open.iter().any(|open| open == name);
                match (name.as_str(), chart.series.last_mut()) {
                    ("formatCode", _) => format = std::mem::take(&mut text),
                    ("v", Some(series)) if within("ser") => {
                        // A category of several levels has its closest first.
                        if within("tx") {
                            series.name.push_str(&text);
                        } else if within("cat") || within("xVal") {
                            let level = number(&text, &format, within("numCache"));
                            let all = series.categories.entry(place).or_default();
                            let gap = if all.is_empty() { "" } else { ", " };
                            all.push_str(&format!("{gap}{level}"));
                        } else if within("val") || within("yVal") {
                            series.values.insert(place, number(&text, &format, true));
                        }
                    }
                    // A title of an axis stands in the area of the plot.
                    ("t" | "v", _) if within("title") && !within("plotArea") => {
                        chart.title.push_str(&text)
                    }
                    ("p", _) if within("title") && !within("plotArea") => chart.title.push(' '),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    chart
}

/// A value as the chart shows it.
fn number(text: &str, format: &str, is_number: bool) -> String {
    let value = text
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|value| is_number && value.is_finite());
    let Some(value) = value else {
        return text.to_owned();
    };
    NumberFormat::parse(format)
        .text(value, false)
        .unwrap_or_else(|| shortest(value))
}

/// How an element of the area of the plot is drawn, in words.
fn kind_of(name: &str) -> Option<String> {
    let kind = name.strip_suffix("Chart")?.trim_end_matches("3D");
    let mut letters = kind.chars();
    let first = letters.next()?.to_ascii_uppercase();
    Some(std::iter::once(first).chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_a_table_of_its_series() {
        let points = |values: &[&str]| -> String {
            let points = values.iter().enumerate();
            points
                .map(|(place, value)| format!(r#"<c:pt idx="{place}"><c:v>{value}</c:v></c:pt>"#))
                .collect()
        };
        let series = |name: &str, values: &[&str]| {
            format!(
                r#"<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>{name}</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef><c:strCache>{}</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:formatCode>0.0%</c:formatCode>{}</c:numCache></c:numRef></c:val></c:ser>"#,
                points(&["North", "South &amp; East"]),
                points(values)
            )
        };
        let title = |text: &str| {
            format!(
                "<c:title><c:tx><c:rich><a:p><a:r><a:t>{text}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
            )
        };
        let xml = format!(
            "<c:chartSpace><c:chart>{}<c:plotArea><c:bar3DChart>{}{}</c:bar3DChart><c:catAx>{}</c:catAx></c:plotArea></c:chart></c:chartSpace>",
            title("Shares"),
            series("2023", &["0.29999999999999999", "0.7"]),
            series("2024", &["0.5"]),
            title("an axis"),
        );
        let expected = "Bar chart: Shares\n\n|  | 2023 | 2024 |\n| - | - | - |\n| North | 30.0% | 50.0% |\n| South & East | 70.0% |  |\n";
        let mut cells = 0;
        assert_eq!(table(&xml, &mut cells, 6).unwrap(), expected);
        assert!(table(&xml, &mut cells, 11).is_err());
        let far = xml.replace(r#"idx="1""#, r#"idx="4294967295""#);
        assert!(
            table(&far, &mut 0, 6)
                .unwrap()
                .contains("| South & East | 70.0% |")
        );
        assert_eq!(table("<c:chartSpace/>", &mut 0, 6).unwrap(), "");
    }
}
