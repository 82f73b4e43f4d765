//! Outputs of programs, kept in a folder that several processes share.

use std::{
    env,
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
    time::UNIX_EPOCH,
};

use sha2::{Digest as _, Sha256};

/// Bytes of the digest that ends a kept file.
const DIGEST_BYTES: usize = 32;

/// How a program makes an output from nothing but what stands here. The program runs in an empty folder.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// A program, found as a shell finds it.
    pub program: &'a str,
    /// Its arguments.
    pub arguments: &'a [&'a str],
    /// The content of the file `input` in its folder.
    pub input: Option<&'a [u8]>,
    /// The file that it writes in its folder, or `None` for its standard output.
    pub output: Option<&'a str>,
}

impl Recipe<'_> {
    /// Returns the name to keep the output by. Another input, another argument and another version of the program have another one.
    fn key(&self, program: &Path) -> String {
        let metadata = fs::metadata(program).expect("a program");
        let modified = metadata.modified().expect("a time");
        let modified = modified.duration_since(UNIX_EPOCH).expect("a time");
        let mut digest = Sha256::new();
        // Each part after its length, so that no two recipes have the same bytes.
        let mut add = |part: &[u8]| {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        add(program.as_os_str().as_encoded_bytes());
        add(&metadata.len().to_le_bytes());
        add(&modified.as_nanos().to_le_bytes());
        add(&(self.arguments.len() as u64).to_le_bytes());
        for argument in self.arguments {
            add(argument.as_bytes());
        }
        for part in [self.input, self.output.map(str::as_bytes)] {
            add(&[u8::from(part.is_some())]);
            add(part.unwrap_or_default());
        }
        hex(&digest.finalize())
    }

    /// Runs the program, and returns its output.
    ///
    /// # Panics
    /// If the program is not installed, or fails.
    #[must_use]
    pub fn made(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        self.run(&found(self.program), folder.path())
    }

    /// Runs the program in a folder, and returns its output.
    fn run(&self, program: &Path, folder: &Path) -> Vec<u8> {
        if let Some(input) = self.input {
            fs::write(folder.join("input"), input).expect("a file");
        }
        let mut command = Command::new(program);
        command.args(self.arguments).current_dir(folder);
        let output = command.output().expect("the program runs");
        assert!(
            output.status.success(),
            "{self}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        match self.output {
            Some(name) => fs::read(folder.join(name)).expect("the program writes its file"),
            None => output.stdout,
        }
    }
}

impl std::fmt::Display for Recipe<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {:?}", self.program, self.arguments)
    }
}

/// A folder with outputs of programs.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Outputs in this folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Outputs below the target folder of cargo, in which this test was built. Cargo leaves its folder `tmp` to tests.
    #[must_use]
    pub fn of_target() -> Self {
        let test = env::current_exe().expect("a path");
        let target = test
            .ancestors()
            .find(|folder| folder.join("CACHEDIR.TAG").exists());
        let target = target.expect("tests run from the target folder of cargo");
        Self::new(target.join("tmp").join("made"))
    }

    /// Returns the output of a recipe, which is run unless its output is here.
    ///
    /// # Panics
    /// If the program is not installed, or fails.
    #[must_use]
    pub fn made(&self, recipe: &Recipe<'_>) -> Vec<u8> {
        let program = found(recipe.program);
        let key = recipe.key(&program);
        let kept = self.folder.join(&key);
        if let Some(output) = read(&kept) {
            return output;
        }
        // One process makes it, and others wait for that. Whoever dies lets go of the lock.
        let locks = self.folder.join("locks");
        fs::create_dir_all(&locks).expect("a folder");
        let lock = File::create(locks.join(&key)).expect("a file");
        lock.lock().expect("a lock");
        if let Some(output) = read(&kept) {
            return output;
        }
        // Whatever a process that died here left behind, the owner of the lock alone uses this folder.
        let work = self.folder.join("work").join(&key);
        clear(&work);
        fs::create_dir_all(&work).expect("a folder");
        let output = recipe.run(&program, &work);
        write(&kept, &output, &work);
        clear(&work);
        output
    }
}

fn clear(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            panic!("{}: {error}", folder.display())
        }
        _ => {}
    }
}

/// Returns the path of a program, which may be a path already.
fn found(program: &str) -> PathBuf {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(program));
    let path = paths.find(|path| path.is_file());
    path.unwrap_or_else(|| panic!("{program} is not installed"))
}

/// Returns the output in a file, or `None` if there is no file, or not all of one: a disk may lose what it was given last.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        read => read.expect("a file that can be read"),
    };
    let length = bytes.len().checked_sub(DIGEST_BYTES)?;
    if Sha256::digest(&bytes[..length])[..] != bytes[length..] {
        return None;
    }
    bytes.truncate(length);
    Some(bytes)
}

/// Writes a file that is there at once and as a whole.
fn write(path: &Path, output: &[u8], work: &Path) {
    let new = work.join("new");
    let bytes = [output, &Sha256::digest(output)[..]].concat();
    fs::write(&new, bytes).expect("a file");
    fs::rename(new, path).expect("a file");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
