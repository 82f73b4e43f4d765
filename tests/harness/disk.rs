//! A file system of a test's own, which can be full.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

/// A small file system in memory; it goes with this value.
#[derive(Debug)]
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// One of this size, such as `24m`; `None` for those who may not mount one.
    #[expect(clippy::print_stdout, reason = "the report says what was not tested")]
    pub fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = mount(&format!("size={size},mode=777"), dir.path());
        match mounted {
            Ok(done) if done.status.success() => Some(Self(dir)),
            refused => {
                println!("not tested: a full disk takes a file system of its own: {refused:?}");
                None
            }
        }
    }

    /// Gives it another size, which has room for what is in it.
    pub fn resize(&self, size: &str) {
        let done = mount(&format!("remount,size={size}"), self.0.path()).unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// The place of a file on it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

fn mount(options: &str, place: &Path) -> std::io::Result<Output> {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]);
    command.arg(place).output()
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let umount = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(umount.unwrap().success());
    }
}
