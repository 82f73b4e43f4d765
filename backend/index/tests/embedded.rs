//! The index in a folder: what every index does, and what becomes of it when its process is killed.

mod contract;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use colloquy_base::clock::{Clock as _, ManualClock, SystemClock};
use colloquy_index::{
    embedded::{EmbeddedIndex, EmbeddedOptions},
    search::{Change, Hit, IndexError, Ranking, SearchIndex as _, Stream},
};
use uuid::Uuid;

use contract::{ask, document, space};

/// Name the folder and the first version for the process that is killed.
const FOLDER: &str = "COLLOQUY_INDEX_TEST_FOLDER";
const FIRST: &str = "COLLOQUY_INDEX_TEST_FIRST";
/// The versions that it writes, if nobody kills it.
const VERSIONS: usize = 1_000;

fn open(folder: &Path) -> Result<EmbeddedIndex, IndexError> {
    EmbeddedIndex::open(folder, EmbeddedOptions::default(), Arc::new(SystemClock))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_does_what_every_index_does() {
    let folder = tempfile::tempdir().unwrap();
    contract::run(&open(folder.path()).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_as_it_was_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let here = space(1, 0);
    {
        let index = open(folder.path()).unwrap();
        for id in 0..20 {
            let text = format!("The animal of number {id} is a bear{id}.");
            index
                .apply(vec![Change::Put(here, document(id, &text))])
                .await
                .unwrap();
        }
        let gone = Change::RemoveDocument {
            base: here.base,
            document: Uuid::from_u128(7),
        };
        index.apply(vec![gone]).await.unwrap();
        assert!(open(folder.path()).is_err(), "one process writes");
    }
    let index = open(folder.path()).unwrap();
    assert_eq!(index.usage().await.unwrap().chunks, 19);
    assert_eq!(
        ask(&index, here, "bear12").await.unwrap()[0]
            .place
            .document
            .as_u128(),
        12
    );
    assert!(
        ask(&index, here, "bear7")
            .await
            .unwrap()
            .iter()
            .all(|passage| passage.place.document.as_u128() != 7)
    );
    index
        .apply(vec![Change::Put(here, document(7, "Back: bear7."))])
        .await
        .unwrap();
    assert_eq!(
        ask(&index, here, "bear7").await.unwrap()[0].text,
        "Back: bear7."
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_holds_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let options = EmbeddedOptions {
        max_chunks: 3,
        ..EmbeddedOptions::default()
    };
    let index = EmbeddedIndex::open(folder.path(), options, Arc::new(SystemClock)).unwrap();
    let put = |id| index.apply(vec![Change::Put(space(id, 0), document(1, "A text."))]);
    for id in 0..3 {
        put(id).await.unwrap();
    }
    assert!(matches!(put(3).await, Err(IndexError::Full)));
    // One in the place of another takes no more room.
    put(2).await.unwrap();
    index
        .apply(vec![Change::RemoveBase(space(0, 0).base)])
        .await
        .unwrap();
    put(3).await.unwrap();
    let usage = index.usage().await.unwrap();
    assert_eq!((usage.chunks, usage.spaces), (3, 3));
    assert!(usage.memory_bytes > 0 && usage.disk_bytes > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_once_are_written_together_and_searched_whole() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path()).unwrap();
    let here = space(1, 0);
    let versions = |version: usize| {
        let text = (0..6).map(|part| {
            format!("# Part {part}\n\nThe tiger of version{version} says in this part nothing but its name, again and again.\n\n")
        });
        text.collect::<String>()
    };
    index
        .apply(vec![Change::Put(here, document(0, &versions(0)))])
        .await
        .unwrap();
    let writers = (1..=4_u128).map(|id| {
        let index = index.clone();
        async move {
            for version in 0..6 {
                index
                    .apply(vec![Change::Put(here, document(0, &versions(version)))])
                    .await
                    .unwrap();
                index
                    .apply(vec![Change::Put(here, document(id, "Beside it."))])
                    .await
                    .unwrap();
            }
        }
    });
    let reading = async {
        for _ in 0..60 {
            let found = ask(&index, here, "tiger").await.unwrap();
            let tigers = found
                .iter()
                .filter(|passage| passage.text.contains("tiger"));
            let versions: Vec<_> = tigers
                .map(|passage| passage.text.split_whitespace().nth(3).unwrap().to_owned())
                .collect();
            assert_eq!(versions.len(), 6, "{versions:?}");
            assert!(
                versions.windows(2).all(|pair| pair[0] == pair[1]),
                "{versions:?}"
            );
        }
    };
    let mut writers: Vec<_> = writers.map(Box::pin).collect();
    let [a, b, c, d] = writers.as_mut_slice() else {
        unreachable!()
    };
    tokio::join!(a, b, c, d, reading);
    assert_eq!(index.usage().await.unwrap().chunks, 10);
}

/// An index of ten documents in a folder, closed.
#[expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
async fn ten_documents(folder: &Path) {
    let index = open(folder).unwrap();
    let put = |id| {
        Change::Put(
            space(1, 0),
            document(id, &format!("A bear of number bear{id}.")),
        )
    };
    index.apply((0..10).map(put).collect()).await.unwrap();
    let gone = Change::RemoveDocument {
        base: space(1, 0).base,
        document: Uuid::from_u128(3),
    };
    index.apply(vec![gone]).await.unwrap();
}

/// The files in which the content of an index is.
#[expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
fn content(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let is_content = |path: &PathBuf| !path.to_string_lossy().ends_with(".lock");
    files.filter(is_content).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_are_found_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    ten_documents(folder.path()).await;
    let files = content(folder.path());
    assert!(files.len() > 5, "{files:?}");
    for path in files {
        let whole = std::fs::read(&path).unwrap();
        let half = whole[..whole.len() / 2].to_vec();
        let zeros = vec![0; whole.len()];
        let mut garbled = whole.clone();
        if path.extension().is_none_or(|kind| kind != "json") {
            garbled[whole.len() / 3] ^= 0x55;
        } else {
            garbled.insert(1, b'}');
        }
        for damaged in [half, zeros, garbled, Vec::new()] {
            std::fs::write(&path, damaged).unwrap();
            let opened = open(folder.path());
            assert!(
                matches!(opened, Err(IndexError::Damaged(_))),
                "{}: {opened:?}",
                path.display()
            );
        }
        std::fs::write(&path, whole).unwrap();
    }
    let index = open(folder.path()).unwrap();
    assert_eq!(index.usage().await.unwrap().chunks, 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_is_damaged_while_it_is_open_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    ten_documents(folder.path()).await;
    let index = open(folder.path()).unwrap();
    index.verify().await.unwrap();
    let put = |id| {
        Change::Put(
            space(1, 0),
            document(id, &format!("A bear of number bear{id}.")),
        )
    };
    for cut in [false, true] {
        let path = content(folder.path()).into_iter();
        let path = path.filter(|path| path.extension().is_some_and(|kind| kind == "store"));
        let path = path.max().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        match cut {
            // As a mapping of the file sees it, too.
            false => {
                let at = bytes.len() / 3;
                bytes[at] ^= 0x55;
                let mut file = std::fs::File::options().write(true).open(&path).unwrap();
                file.write_all(&bytes).unwrap();
            }
            true => {
                let file = std::fs::File::options().write(true).open(&path).unwrap();
                file.set_len(bytes.len() as u64 / 2).unwrap();
            }
        }
        let damaged = index.verify().await;
        assert!(
            matches!(damaged, Err(IndexError::Damaged(_))),
            "{damaged:?}"
        );
        index.clear().await.unwrap();
        assert_eq!(index.usage().await.unwrap().chunks, 0);
        index.verify().await.unwrap();
        index.apply((0..10).map(put).collect()).await.unwrap();
        let found = ask(&index, space(1, 0), "bear3").await.unwrap();
        assert_eq!(found[0].place.document.as_u128(), 3);
    }
    drop(index);
    let index = open(folder.path()).unwrap();
    assert_eq!(index.usage().await.unwrap().chunks, 10);
}

/// A search compares no checksums, and sees what was changed of a file by its length and its time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_sees_that_a_file_was_changed_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    ten_documents(folder.path()).await;
    for case in ["touched", "changed", "longer", "removed"] {
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let index = EmbeddedIndex::open(folder.path(), EmbeddedOptions::default(), clock.clone());
        let index = index.unwrap();
        ask(&index, space(1, 0), "bear3").await.unwrap();
        let path = content(folder.path()).into_iter();
        let path = path.filter(|path| path.extension().is_some_and(|kind| kind == "store"));
        let path = path.max().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        match case {
            "changed" => bytes[whole.len() / 3] ^= 0x55,
            "longer" => bytes.push(0),
            _ => {}
        }
        match case {
            "removed" => std::fs::remove_file(&path).unwrap(),
            _ => {
                let mut file = std::fs::File::options().write(true).open(&path).unwrap();
                file.write_all(&bytes).unwrap();
                let another = std::time::SystemTime::UNIX_EPOCH;
                file.set_modified(another).unwrap();
            }
        }
        clock.advance(Duration::from_secs(5));
        for _ in 0..2 {
            let found = ask(&index, space(1, 0), "bear3").await;
            let found = found.map_err(|error| error.to_string());
            match case {
                "touched" => assert!(found.is_ok(), "{found:?}"),
                _ => assert!(
                    found.as_ref().is_err_and(|error| error.contains("damaged")),
                    "{case}: {found:?}"
                ),
            }
        }
        let looked = index.look().await;
        assert_eq!(looked.is_ok(), case == "touched", "{case}: {looked:?}");
        drop(index);
        std::fs::write(&path, whole).unwrap();
    }
}

/// What the words of a question find, as deep as that.
async fn ranked(index: &EmbeddedIndex, text: &str, depth: usize) -> Result<Vec<Hit>, IndexError> {
    let mut request = contract::question(space(1, 0), text);
    request.fusion.top_k = depth;
    request.fusion.search_multiplier = 1;
    let rankings = index.search(request).await?.rankings;
    let of_words = |ranking: &Ranking| ranking.stream == Stream::Bm25;
    let found = rankings.into_iter().find(of_words);
    Ok(found.map(|ranking| ranking.hits).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_of_several_segments_are_the_best_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path()).unwrap();
    // A document says more or less of other things beside the tiger, and some say more of it than others.
    let says = |id: u128| {
        let (tigers, others) = (1 + usize::try_from(id * 7 % 5).unwrap(), id * 13 % 17);
        let others = (0..others).map(|at| format!(" thing{}", (id + at) % 29));
        format!(
            "{}of{id}{}.",
            "tiger ".repeat(tigers),
            others.collect::<String>()
        )
    };
    // Fewer commits than are merged, each a segment.
    let commits = [0..40, 40..240, 240..250, 250..340, 340..341_u128];
    for ids in commits {
        let put = ids.map(|id| Change::Put(space(1, 0), document(id, &says(id))));
        index.apply(put.collect()).await.unwrap();
    }
    let gone = (0..341).filter(|id| id % 11 == 3);
    let gone = gone.map(|document| Change::RemoveDocument {
        base: space(1, 0).base,
        document: Uuid::from_u128(document),
    });
    index.apply(gone.collect()).await.unwrap();
    for question in [
        "tiger",
        "tiger thing3",
        "thing3 thing5 thing8 tiger",
        "of77 thing2",
    ] {
        let all = ranked(&index, question, 1_000).await.unwrap();
        assert!(!all.is_empty(), "{question}");
        let kept = |hit: &Hit| hit.place.document.as_u128() % 11 != 3;
        assert!(
            all.iter().all(kept),
            "{question}: what was removed is not found"
        );
        for depth in [1, 2, 3, 10, 40, 100] {
            let first = ranked(&index, question, depth).await.unwrap();
            let expected: Vec<_> = all.iter().take(depth).map(|hit| hit.score).collect();
            let scores: Vec<_> = first.iter().map(|hit| hit.score).collect();
            assert_eq!(scores, expected, "{question}: the first {depth}");
            assert!(
                first.iter().all(|hit| all.contains(hit)),
                "{question}: the first {depth}"
            );
        }
    }
}

/// Merging takes space on a disk, which is told by the files of segments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn segments_are_merged_unless_that_is_held_back() {
    let folder = tempfile::tempdir().unwrap();
    let index = open(folder.path()).unwrap();
    let segments = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let stores = paths.filter(|path| path.extension().is_some_and(|kind| kind == "store"));
        stores.count()
    };
    let put = async |id: u128| {
        let put = Change::Put(space(1, 0), document(id, "A lion eats meat."));
        index.apply(vec![put]).await.unwrap();
    };
    index.hold_merges(true);
    for id in 0..12 {
        put(id).await;
    }
    assert_eq!(segments(), 12);
    index.hold_merges(false);
    put(12).await;
    // A merge ends some time after the commit that began it.
    for _ in 0..3_000 {
        if segments() < 12 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was merged");
}

/// How many chunks a version of a document has.
fn chunks_of(version: usize) -> usize {
    1 + version % 5
}

fn version_of(id: u128, version: usize) -> String {
    let part = |part: usize| {
        format!(
            "# Part {part}\n\nThe document{id} in version{version} has this part and says enough to be a chunk of its own.\n\n"
        )
    };
    (0..chunks_of(version)).map(part).collect()
}

/// The process that is killed: writes documents again and again, and says what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by the test below"]
async fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let index = open(Path::new(&folder)).unwrap();
    let first: usize = std::env::var(FIRST).unwrap().parse().unwrap();
    for version in first..first + VERSIONS {
        let id = u128::try_from(version % 7).unwrap();
        let put = Change::Put(space(1, 0), document(id, &version_of(id, version)));
        index.apply(vec![put]).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nwritten {id} {version}").unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_after_a_kill_and_nothing_is_there_by_half() {
    let folder = tempfile::tempdir().unwrap();
    let mut written: BTreeMap<u128, usize> = BTreeMap::new();
    for round in 0..6_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "writes_until_it_is_killed",
            ])
            .env(FOLDER, folder.path())
            .env(FIRST, (round * VERSIONS).to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = 0;
        for line in lines.map_while(Result::ok) {
            let words: Vec<_> = line.split(' ').collect();
            if let ["written", id, version] = words.as_slice() {
                written.insert(id.parse().unwrap(), version.parse().unwrap());
                acknowledged += 1;
                // SIGKILL, while it goes on writing: each round a little later.
                if acknowledged == 5 + round * 3 {
                    std::thread::sleep(std::time::Duration::from_millis(
                        3 * u64::try_from(round).unwrap(),
                    ));
                    child.kill().unwrap();
                }
            }
        }
        child.wait().unwrap();
        assert!(acknowledged >= 5 + round * 3, "it wrote {acknowledged}");
        let index = open(folder.path()).unwrap();
        for (id, version) in &mut written {
            let mut request = contract::question(space(1, 0), &format!("document{id}"));
            request.fusion.top_k = 100;
            let found = index.search(request).await.unwrap().passages;
            let own: Vec<_> = found
                .iter()
                .filter(|passage| passage.place.document.as_u128() == *id)
                .collect();
            let versions: Vec<usize> = own
                .iter()
                .map(|passage| {
                    let word = passage
                        .text
                        .split_whitespace()
                        .find_map(|word| word.strip_prefix("version"));
                    word.unwrap().parse().unwrap()
                })
                .collect();
            let kept = *versions.first().expect("an acknowledged document is there");
            // What was written last may have been committed before it could be acknowledged.
            assert!(kept >= *version, "{kept} of {version}");
            assert_eq!(versions, vec![kept; chunks_of(kept)], "document {id}");
            *version = kept;
        }
    }
}
