//! Files and folders of the server that no helper program may read, also where they lie in a folder that it may.
//!
//! They are those of the process: every sandbox and every launcher hides all of them.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf, absolute},
    sync::{PoisonError, RwLock},
};

use super::confine::SYSTEM;

static HIDDEN: RwLock<BTreeSet<PathBuf>> = RwLock::new(BTreeSet::new());

/// Hides files and folders from all helper programs that are started from now on. Those that do not exist yet are hidden once they do.
///
/// A launcher that has started a program before keeps what it had hidden then.
///
/// # Errors
/// When a path is empty.
pub fn hide(paths: impl IntoIterator<Item = PathBuf>) -> io::Result<()> {
    let paths: Vec<PathBuf> = paths
        .into_iter()
        .map(|path| real(&path))
        .collect::<io::Result<_>>()?;
    let mut hidden = HIDDEN.write().unwrap_or_else(PoisonError::into_inner);
    hidden.extend(paths);
    Ok(())
}

/// Returns all that is hidden, without links.
pub(crate) fn hidden() -> Vec<PathBuf> {
    let hidden = HIDDEN.read().unwrap_or_else(PoisonError::into_inner);
    hidden.iter().cloned().collect()
}

/// Returns the hidden file or folder that a path is, or lies in.
///
/// # Errors
/// When the path is empty.
pub fn hidden_around(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = real(path)?;
    let mut hidden = hidden().into_iter();
    Ok(hidden.find(|hidden| path.starts_with(hidden)))
}

/// Returns the folder that a path lies in of those that helper programs read: the system's, and `readable`.
///
/// # Errors
/// When a path is empty.
pub fn readable_around(path: &Path, readable: &[PathBuf]) -> io::Result<Option<PathBuf>> {
    let path = real(path)?;
    for folder in SYSTEM
        .iter()
        .map(Path::new)
        .chain(readable.iter().map(PathBuf::as_path))
    {
        let folder = real(folder)?;
        if path.starts_with(&folder) {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// Returns a path without links, as far as it exists.
fn real(path: &Path) -> io::Result<PathBuf> {
    let path = absolute(path)?;
    if let Ok(real) = fs::canonicalize(&path) {
        return Ok(real);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(real(parent)?.join(name)),
        _ => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_are_hidden_by_their_real_names_before_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("disk")).unwrap();
        symlink(root.join("disk"), root.join("link")).unwrap();
        hide([root.join("link/data"), root.join("link/settings.toml")]).unwrap();
        let around = |path: &str| hidden_around(&root.join(path)).unwrap();
        let data = root.join("disk/data");
        assert!(hidden().contains(&data));
        for inside in ["link/data", "disk/data/bin/yt-dlp"] {
            assert_eq!(around(inside), Some(data.clone()), "{inside}");
        }
        for outside in ["disk", "link/database", "disk/settings.toml.old"] {
            assert_eq!(around(outside), None, "{outside}");
        }
    }

    #[test]
    fn folders_that_programs_read_are_found_around_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let around = |path: &Path| {
            let readable = [root.join("readable")];
            readable_around(path, &readable).unwrap()
        };
        let shared = Path::new("/usr/share").canonicalize().unwrap();
        assert_eq!(around(Path::new("/usr/share/colloquy")), Some(shared));
        assert_eq!(around(Path::new("/usr/local/var/colloquy")), None);
        let readable = root.join("readable");
        assert_eq!(around(&root.join("readable/data")), Some(readable));
        assert_eq!(around(&root.join("data")), None);
        assert!(around(Path::new("/var/lib/colloquy")).is_none());
    }
}
