//! The collection of `tests/data/cranfield`, and how good a ranking of it is.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// An abstract.
#[derive(Debug)]
pub(crate) struct Abstract {
    pub(crate) title: String,
    pub(crate) text: String,
}

/// The collection.
#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) abstracts: Vec<Abstract>,
    pub(crate) questions: Vec<String>,
    /// For each question the abstracts that answer it, by their place.
    pub(crate) answers: Vec<HashSet<usize>>,
}

/// Where the collection is.
pub(crate) fn folder() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest
        .ancestors()
        .find(|folder| folder.join("tests/data/cranfield").is_dir());
    root.unwrap_or(manifest).join("tests/data/cranfield")
}

/// Reads the collection in a folder.
///
/// # Errors
/// When a file is missing, or is not what it should be.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Collection> {
    let file = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let abstracts = entries(&file("cran.all.1400")?).into_iter().map(|entry| {
        let (title, text) = (field(&entry, 'T'), field(&entry, 'W'));
        // The text begins with the title.
        let rest = text.strip_prefix(&title).unwrap_or(&text).trim().to_owned();
        Abstract { title, text: rest }
    });
    let questions = entries(&file("cran.qry")?);
    let mut collection = Collection {
        abstracts: abstracts.collect(),
        answers: vec![HashSet::new(); questions.len()],
        questions: questions.iter().map(|entry| field(entry, 'W')).collect(),
    };
    for line in file("cranqrel")?.lines() {
        let numbers: Vec<i64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [question, answer, grade] = numbers.as_slice() else {
            anyhow::bail!("a line of cranqrel has {} numbers", numbers.len());
        };
        let place = |number: i64| usize::try_from(number - 1);
        let answers = collection.answers.get_mut(place(*question)?);
        if *grade > 0 {
            answers
                .context("an unknown question")?
                .insert(place(*answer)?);
        }
    }
    Ok(collection)
}

/// The fields of each entry of a file.
fn entries(file: &str) -> Vec<Vec<(char, String)>> {
    let mut entries: Vec<Vec<(char, String)>> = Vec::new();
    for line in file.lines() {
        let mut mark = line.strip_prefix('.').unwrap_or_default().chars();
        match (mark.next(), entries.last_mut()) {
            (Some('I'), _) => entries.push(Vec::new()),
            (Some(name @ ('T' | 'A' | 'B' | 'W')), Some(entry)) if mark.next().is_none() => {
                entry.push((name, String::new()));
            }
            (_, Some(entry)) => {
                if let Some((_, text)) = entry.last_mut() {
                    text.push_str(line);
                    text.push(' ');
                }
            }
            (_, None) => {}
        }
    }
    entries
}

fn field(entry: &[(char, String)], name: char) -> String {
    let text = entry.iter().find(|(field, _)| *field == name);
    let words = text.map(|(_, text)| text.split_whitespace().collect::<Vec<_>>().join(" "));
    words.unwrap_or_default()
}

/// The normalized discounted cumulative gain of the first ten of a ranking.
pub(crate) fn ndcg10(ranking: &[usize], answers: &HashSet<usize>) -> f64 {
    let discount = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let gains = ranking.iter().take(10).enumerate();
    let gain: f64 = gains
        .filter(|(_, found)| answers.contains(found))
        .map(|(rank, _)| discount(rank))
        .sum();
    let best: f64 = (0..answers.len().min(10)).map(discount).sum();
    if best > 0.0 { gain / best } else { 0.0 }
}

/// The part of the answers that is among the first hundred.
pub(crate) fn recall100(ranking: &[usize], answers: &HashSet<usize>) -> f64 {
    let found = ranking
        .iter()
        .take(100)
        .filter(|found| answers.contains(found))
        .count();
    found as f64 / answers.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collection_is_whole() {
        let collection = read(&folder()).unwrap();
        assert_eq!(
            (collection.abstracts.len(), collection.questions.len()),
            (1_400, 225)
        );
        assert_eq!(
            collection.answers.iter().map(HashSet::len).sum::<usize>(),
            1_612
        );
        assert!(collection.questions[0].starts_with("what similarity laws"));
        assert!(
            collection.abstracts[0]
                .text
                .starts_with("an experimental study")
        );
    }

    #[test]
    fn a_perfect_ranking_is_one() {
        let answers = HashSet::from([3, 5]);
        assert_eq!(ndcg10(&[5, 3, 1], &answers), 1.0);
        assert_eq!(ndcg10(&[1, 2], &answers), 0.0);
        let second = ndcg10(&[1, 3], &answers);
        assert!((second - 0.6309 / 1.6309).abs() < 1e-3, "{second}");
        assert_eq!(recall100(&[1, 3], &answers), 0.5);
    }
}
