use std::{os::unix::fs::PermissionsExt as _, sync::Barrier, thread, time::Duration};

use tempfile::TempDir;

use super::*;

/// A cache, and a program that notes each of its runs.
struct Place {
    folder: TempDir,
    cache: Cache,
}

impl Place {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("made"));
        let place = Self { folder, cache };
        place.program(script);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, script: &str) {
        let runs = self.path("runs");
        let script = format!("#!/bin/sh\necho >>'{}'\n{script}\n", runs.display());
        let program = self.path("program");
        fs::write(&program, script).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn made(&self, arguments: &[&str], input: Option<&[u8]>, output: Option<&str>) -> Vec<u8> {
        let program = self.path("program");
        self.cache.made(&Recipe {
            program: program.to_str().unwrap(),
            arguments,
            input,
            output,
        })
    }

    fn runs(&self) -> usize {
        fs::read(self.path("runs")).unwrap_or_default().len()
    }

    /// The files with outputs.
    fn kept(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("made")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_file()).collect()
    }
}

/// Random bytes, so that a second run would give others.
const RANDOM: &str = "head -c 1000 /dev/urandom";

#[test]
fn an_output_is_made_once() {
    let place = Place::new(RANDOM);
    let first = place.made(&["a"], None, None);
    assert_eq!(first.len(), 1_000);
    assert_eq!(place.made(&["a"], None, None), first);
    assert_eq!(place.runs(), 1);
}

#[test]
fn a_recipe_alone_keeps_nothing() {
    let place = Place::new(RANDOM);
    let program = place.path("program");
    let recipe = Recipe {
        program: program.to_str().unwrap(),
        arguments: &[],
        input: None,
        output: None,
    };
    assert_ne!(recipe.made(), recipe.made());
    assert_eq!(place.runs(), 2);
    assert!(!place.path("made").exists());
}

#[test]
fn files_are_read_and_written() {
    let place = Place::new("cat input >\"$1\"; echo more >>\"$1\"");
    for _ in 0..2 {
        assert_eq!(
            place.made(&["a.txt"], Some(b"some "), Some("a.txt")),
            b"some more\n"
        );
    }
    assert_eq!(place.runs(), 1);
}

#[test]
fn other_recipes_have_other_outputs() {
    let place = Place::new(&format!("{RANDOM} | tee b"));
    type Parts<'a> = (&'a [&'a str], Option<&'a [u8]>, Option<&'a str>);
    let recipes: [Parts<'_>; 8] = [
        (&[], None, None),
        (&[""], None, None),
        (&["a", "b"], None, None),
        (&["ab"], None, None),
        (&["b", "a"], None, None),
        (&["ab"], Some(b""), None),
        (&["ab"], Some(b"c"), None),
        (&["ab"], None, Some("b")),
    ];
    let outputs = recipes.map(|(arguments, input, output)| place.made(arguments, input, output));
    for (at, output) in outputs.iter().enumerate() {
        assert!(!outputs[..at].contains(output), "{:?}", recipes[at]);
    }
    assert_eq!(place.runs(), recipes.len());
}

#[test]
fn another_version_of_a_program_makes_it_again() {
    let place = Place::new("echo one");
    assert_eq!(place.made(&[], None, None), b"one\n");
    place.program("echo three");
    assert_eq!(place.made(&[], None, None), b"three\n");
    // Of the same length, but of another day.
    place.program("echo seven");
    let program = File::options()
        .append(true)
        .open(place.path("program"))
        .unwrap();
    let modified = program.metadata().unwrap().modified().unwrap();
    let day = Duration::from_secs(24 * 60 * 60);
    program.set_modified(modified - day).unwrap();
    drop(program);
    assert_eq!(place.made(&[], None, None), b"seven\n");
}

#[test]
fn a_file_that_is_not_whole_is_made_again() {
    let place = Place::new("echo sound");
    let sound = place.made(&[], None, None);
    let kept = place.kept();
    assert_eq!(kept.len(), 1);
    let whole = fs::read(&kept[0]).unwrap();
    let mut runs = 1;
    for length in 0..whole.len() {
        fs::write(&kept[0], &whole[..length]).unwrap();
        assert_eq!(place.made(&[], None, None), sound, "{length} bytes");
        runs += 1;
        assert_eq!(place.runs(), runs, "{length} bytes");
    }
    let mut wrong = whole.clone();
    wrong[2] ^= 1;
    fs::write(&kept[0], wrong).unwrap();
    assert_eq!(place.made(&[], None, None), sound);
}

#[test]
fn what_a_process_that_died_left_behind_is_not_read() {
    // Dies with half of its file written, the first time.
    let place = Place::new(
        "printf half >a; [ -e ../../../there ] || { touch ../../../there; exit 1; }; printf ' and half' >>a",
    );
    let died = thread::scope(|scope| scope.spawn(|| place.made(&[], None, Some("a"))).join());
    assert!(died.is_err());
    assert!(place.kept().is_empty());
    assert_eq!(place.made(&[], None, Some("a")), b"half and half");
}

#[test]
fn many_at_a_time_make_it_once_and_see_all_of_it() {
    // Long enough that a reader would meet a writer.
    let place = Place::new("head -c 3000000 /dev/urandom");
    let readers = 8;
    let barrier = Barrier::new(readers);
    let outputs: Vec<Vec<u8>> = thread::scope(|scope| {
        let read = || {
            barrier.wait();
            place.made(&[], None, None)
        };
        let reading: Vec<_> = (0..readers).map(|_| scope.spawn(read)).collect();
        reading.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(outputs.iter().all(|output| output.len() == 3_000_000));
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    assert_eq!(place.runs(), 1);
}

#[test]
fn a_program_that_fails_is_not_kept() {
    let place = Place::new("echo sound; echo 'no such voice' >&2; exit 3");
    for runs in 1..3 {
        let failed = thread::scope(|scope| scope.spawn(|| place.made(&[], None, None)).join());
        let message = failed.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("no such voice"), "{message}");
        assert_eq!(place.runs(), runs);
    }
}
