//! The processes that decode what is not trusted.

use std::path::{Component, Path, PathBuf};

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize};

/// Paths that no helper program may read, so that no folder with one of them in it may be named.
const PRIVATE: [&str; 4] = ["/etc/shadow", "/home", "/proc", "/root"];

/// The processes that decode what is not trusted, such as the files of partners.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// How many there are at once; 0: as many as the machine has cores.
    pub processes: u32,
    /// The program that is run, a `colloquy` of this version; unset: the running one.
    pub program: Option<PathBuf>,
    /// Files and folders that helper programs (yt-dlp, Tesseract) may read besides what belongs to the system and to themselves. What is the
    /// server's own in such a folder is hidden.
    pub readable: Vec<PathBuf>,
}

impl SandboxConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(self.processes <= 1_024, "sandbox.processes: at most 1024");
        if let Some(program) = &self.program {
            ensure!(program.is_absolute(), "sandbox.program: an absolute path");
        }
        for path in &self.readable {
            let mut parts = path.components();
            ensure!(
                path.is_absolute() && parts.all(|part| part != Component::ParentDir),
                "sandbox.readable: absolute paths, without .."
            );
            if let Some(private) = PRIVATE.iter().find(|it| Path::new(it).starts_with(path)) {
                bail!(
                    "sandbox.readable: {} includes {private}, which no helper program may read; name the folder that the program needs",
                    path.display()
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_is_readable_that_includes_what_is_private() {
        let validated = |path: &str| {
            let config = SandboxConfig {
                readable: vec![path.into()],
                ..SandboxConfig::default()
            };
            config.validate().map_err(|error| error.to_string())
        };
        for path in [
            "/opt/tessdata",
            "/home/ada/tessdata",
            "/etc/fonts",
            "/rooted",
        ] {
            assert_eq!(validated(path), Ok(()), "{path}");
        }
        for (path, private) in [
            ("/", "/etc/shadow"),
            ("/etc/./", "/etc/shadow"),
            ("/home", "/home"),
            ("/proc/", "/proc"),
            ("/root", "/root"),
        ] {
            let refused = validated(path).unwrap_err();
            assert!(
                refused.contains(&format!("includes {private},")),
                "{refused}"
            );
        }
        for path in ["relative", "/opt/../root"] {
            let refused = validated(path).unwrap_err();
            assert!(refused.contains("absolute paths"), "{refused}");
        }
    }
}
