//! What of sounds is removed, and when.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use super::*;

/// The place of the process that is killed.
const PLACE: &str = "COLLOQUY_SOUNDS_TEST";

fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
#[ignore = "a process of its own, which is killed"]
fn holds_a_folder() {
    let place = env::var_os(PLACE).unwrap();
    let folder = Folder::make(Path::new(&place)).unwrap();
    let mut sound = folder.file().unwrap();
    sound.write_all(b"hunter2").unwrap();
    println!("\nheld");
    io::stdout().flush().unwrap();
    // Until it is killed, or the one that started it is gone.
    io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn the_folder_of_a_killed_process_is_removed_and_that_of_a_live_one_stays() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "--exact"])
        .arg("embedded::sounds::tests::holds_a_folder")
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    let held = names(place);
    assert_eq!(held.len(), 1);
    let held = place.join(&held[0]);
    assert_eq!(names(&held).len(), 1, "a sound");
    let mode = fs::metadata(&held).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, MODE);

    let other = Folder::make(place).unwrap();
    sweep(place, 0);
    assert_eq!((names(place).len(), names(&held).len()), (2, 1));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(&held).len(), 1, "nobody else removes it");
    sweep(place, 0);
    assert!(!held.exists() && other.is_there());
    drop(other);
    assert_eq!(names(place), Vec::<String>::new());
}

#[test]
fn only_folders_of_processes_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let kept = place.join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "").unwrap();
    symlink(&kept, place.join(format!("{PREFIX}link"))).unwrap();
    fs::write(place.join(format!("{PREFIX}file")), "").unwrap();
    // A process was killed before it locked it.
    fs::create_dir(place.join(format!("{PREFIX}begun"))).unwrap();
    sweep(place, 0);
    let mut left = names(place);
    left.sort();
    assert_eq!(
        left,
        [
            format!("{PREFIX}file"),
            format!("{PREFIX}link"),
            "kept".to_owned()
        ]
    );
    assert!(kept.join("file").exists());
}

#[test]
fn files_of_earlier_versions_are_removed_once_they_are_old() {
    const NOW_S: i64 = 1_700_000_000;
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let write = |name: &str, age_s: i64| {
        let file = File::create(place.join(name)).unwrap();
        let modified = Duration::from_secs((NOW_S - age_s).try_into().unwrap());
        file.set_modified(SystemTime::UNIX_EPOCH + modified)
            .unwrap();
    };
    write("colloquy-a1B2c3.raw", OLD_SECONDS + 1);
    // A server of an earlier version may be using it.
    write("colloquy-d4E5f6.raw", OLD_SECONDS);
    // From a clock that was ahead.
    write("colloquy-g7H8i9.raw", -2 * OLD_SECONDS);
    let others = ["colloquy-a1B2.raw", "colloquy-my_one.raw", "a1B2c3.raw"];
    for name in others {
        write(name, 2 * OLD_SECONDS);
    }
    fs::create_dir(place.join("colloquy-folder.raw")).unwrap();
    symlink(place.join(others[0]), place.join("colloquy-link00.raw")).unwrap();
    sweep(place, NOW_S);
    let mut left = names(place);
    left.sort();
    let mut expected = vec![
        "colloquy-d4E5f6.raw",
        "colloquy-g7H8i9.raw",
        "colloquy-folder.raw",
        "colloquy-link00.raw",
    ];
    expected.extend(others);
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn the_folder_is_removed_when_the_process_stops() {
    let place = tempfile::tempdir().unwrap();
    let held = Mutex::default();
    let file = with_folder(&held, place.path(), Folder::file).unwrap();
    assert_eq!(names(place.path()).len(), 1);
    remove(&held);
    assert!(names(place.path()).is_empty() && !file.path().exists());
    // One that was not needed.
    remove(&held);
    // An utterance may still come.
    let late = with_folder(&held, place.path(), Folder::file).unwrap();
    assert!(late.path().exists());
}

#[test]
fn a_folder_that_was_cleaned_up_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let held = Mutex::default();
    let file = || with_folder(&held, place.path(), Folder::file).unwrap();
    let (first, again) = (file(), file());
    let folder = first.path().parent().unwrap().to_owned();
    assert_eq!(again.path().parent().unwrap(), folder);
    fs::remove_dir_all(&folder).unwrap();
    let second = file();
    assert!(second.path().exists() && !folder.exists());
    assert_eq!(names(place.path()).len(), 1);
    let path = second.path().to_owned();
    drop(second);
    assert!(!path.exists());
}

#[test]
fn a_folder_in_the_place_of_the_own_one_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::make(place.path()).unwrap();
    assert!(folder.is_there());
    let path = folder.path.path();
    fs::rename(path, place.path().join("moved")).unwrap();
    fs::create_dir(path).unwrap();
    assert!(!folder.is_there());
    fs::remove_dir(path).unwrap();
    symlink(place.path().join("moved"), path).unwrap();
    assert!(!folder.is_there());
}
