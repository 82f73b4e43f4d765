//! A file system of a test's own, which can be full.

use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

/// Who may mount without these tests being the administrator's: what stands before the command.
const MOUNTERS: [&[&str]; 2] = [&[], &["sudo", "-n"]];

/// With this set, tests that need a disk of their own pass without one, and say so.
const WITHOUT_DISKS: &str = "COLLOQUY_TEST_WITHOUT_DISKS";

/// The file that gets a line for everything that was not tested; `tests/run` shows it at the end.
const REMARKS: &str = "COLLOQUY_TEST_REMARKS";

/// A small file system in memory; it goes with this value.
#[derive(Debug)]
pub struct SmallDisk {
    dir: TempDir,
    mounter: &'static [&'static str],
}

impl SmallDisk {
    /// One of this size, such as `24m`. `None` where nobody may mount one and `COLLOQUY_TEST_WITHOUT_DISKS` permits to go
    /// without.
    ///
    /// # Panics
    /// Where nobody may mount one and that is not permitted.
    pub fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size},mode=777");
        let mut refused = Vec::new();
        for mounter in MOUNTERS {
            match mount(mounter, &options, dir.path()) {
                Ok(done) if done.status.success() => return Some(Self { dir, mounter }),
                other => refused.push(other),
            }
        }
        let what = "a full disk, since nobody may mount a file system for it";
        assert!(
            env::var_os(WITHOUT_DISKS).is_some(),
            "not tested: {what} ({refused:?}); {WITHOUT_DISKS}=1 passes over it"
        );
        not_tested(what);
        None
    }

    /// Gives it another size, which has room for what is in it.
    pub fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let done = mount(self.mounter, &options, self.dir.path()).unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Leaves no room on it, with a file that goes with this value.
    pub fn fill(&self) -> Ballast {
        let path = self.path("ballast");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[7; 4_096]).is_ok() {}
        Ballast(path)
    }

    /// Leaves only so many bytes on it, in whole pages.
    pub fn fill_but(&self, free: u64) -> Ballast {
        let ballast = self.fill();
        let file = OpenOptions::new().write(true).open(&ballast.0).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - free).unwrap();
        ballast
    }

    /// The place of a file on it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A file that leaves no room for others.
#[derive(Debug)]
pub struct Ballast(PathBuf);

impl Drop for Ballast {
    fn drop(&mut self) {
        // A file that is only unlinked keeps its room while anybody has it open.
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&self.0)
            .unwrap();
        fs::remove_file(&self.0).unwrap();
    }
}

fn mount(mounter: &[&str], options: &str, place: &Path) -> io::Result<Output> {
    let words = [mounter, &["mount", "-t", "tmpfs", "-o", options, "tmpfs"]].concat();
    command(&words, place).output()
}

fn command(words: &[&str], place: &Path) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(place);
    command
}

/// Says that something was not tested, where whoever runs the tests finds it.
#[expect(clippy::print_stdout, reason = "the report says what was not tested")]
pub(crate) fn not_tested(what: &str) {
    println!("not tested: {what}");
    if let Some(path) = env::var_os(REMARKS) {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "not tested: {what}").unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let words = [self.mounter, &["umount", "-l"]].concat();
        let umount = command(&words, self.dir.path()).status();
        assert!(umount.unwrap().success());
    }
}
