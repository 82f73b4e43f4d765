//! Models of the tests' own, and a folder into which they are pulled.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use colloquy_models::{
    folder::ModelsFolder,
    manifest::{HubFile, Languages, Model, ModelFile, PackageMember, Purpose, Registry},
    pull::{Origin, Patience, Published, PullError, Step, pull},
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::server::Server;

/// Where the hub has the file of a [`published`] model.
pub(crate) const AT_HUB: &str = "/voices/small/resolve/v1/voice.bin";

/// A web server, and a models folder that nobody has made yet.
pub(crate) struct Setting {
    pub(crate) server: Server,
    pub(crate) base: String,
    pub(crate) folder: ModelsFolder,
    pub(crate) temporary: TempDir,
    pub(crate) patience: Patience,
    steps: Mutex<Vec<String>>,
}

impl Setting {
    pub(crate) async fn new() -> Self {
        let server = Server::new();
        let temporary = TempDir::new().unwrap();
        Self {
            base: server.start().await,
            server,
            folder: ModelsFolder::new(temporary.path().join("models")),
            temporary,
            patience: Patience {
                pause: Duration::from_millis(5),
                ..Patience::default()
            },
            steps: Mutex::default(),
        }
    }

    /// The server as a mirror.
    pub(crate) fn mirror(&self) -> Origin {
        Origin::parse(&self.base).unwrap()
    }

    /// The server as the hub and as the index of packages.
    pub(crate) fn published(&self) -> Origin {
        Origin::Published(Published {
            hub: self.base.clone(),
            packages: format!("{}simple/", self.base),
            npm_packages: format!("{}npm/", self.base),
        })
    }

    /// Where files are until they are whole.
    pub(crate) fn partial(&self) -> PathBuf {
        self.folder.path().join(".partial")
    }

    /// What an earlier process has left of a file.
    pub(crate) fn leave(&self, file: &ModelFile, part: &[u8]) {
        fs::create_dir_all(self.partial()).unwrap();
        fs::write(self.partial().join(file.sha256), part).unwrap();
    }

    /// Takes away all that is in the folder.
    pub(crate) fn clear(&self) {
        let _ = fs::remove_dir_all(self.folder.path());
    }

    /// What was reported since this was last asked.
    pub(crate) fn steps(&self) -> Vec<String> {
        std::mem::take(&mut self.steps.lock().unwrap())
    }

    /// Pulls, and looks at each step: what is reported is in order, and no file is in its place that was not there before
    /// and does not have its hash.
    pub(crate) async fn get(
        &self,
        model: &'static Model,
        origin: &Origin,
    ) -> Result<(), PullError> {
        let read = |file: &ModelFile| fs::read(self.folder.file(model, file)).ok();
        let before: Vec<_> = model.files.iter().map(read).collect();
        let mut current: Option<(u64, u64)> = None;
        let mut is_told_how_much = false;
        let mut watch = |step: Step<'_>| {
            for (file, before) in model.files.iter().zip(&before) {
                let now = read(file);
                let is_right = now
                    .as_deref()
                    .map(hash)
                    .is_none_or(|now| now == file.sha256);
                assert!(is_right || now == *before, "{} is wrong", file.name);
            }
            if let Step::Arrived { bytes, arrived } = step {
                let (of, so_far) = current.unwrap();
                assert!(bytes == of && arrived <= bytes, "{arrived} of {bytes}");
                if arrived <= so_far {
                    self.tell("again".to_owned());
                }
                current = Some((of, arrived));
                self.server.arrived.send_replace(arrived);
                return;
            }
            if let Step::Wanted { files, bytes } = step {
                assert!(!is_told_how_much && current.is_none());
                let missing = model.files.iter();
                let missing = missing
                    .filter(|file| read(file).as_deref().map(hash).as_deref() != Some(file.sha256));
                let missing: Vec<_> = missing.map(|file| file.bytes).collect();
                assert_eq!((files, bytes), (missing.len(), missing.iter().sum()));
                is_told_how_much = true;
                return;
            }
            self.tell(match step {
                Step::Waiting => "waiting".to_owned(),
                Step::Present { file, .. } => format!("present {}", file.name),
                Step::Begins { name, bytes, .. } => {
                    assert!(is_told_how_much);
                    current = Some((bytes, 0));
                    format!("begins {name}")
                }
                Step::Failed { error, .. } => format!("failed: {error}"),
                Step::Done { file, .. } => format!("done {}", file.name),
                Step::Arrived { .. } | Step::Wanted { .. } => unreachable!(),
            });
        };
        pull(&self.folder, &[model], origin, &self.patience, &mut watch).await
    }

    fn tell(&self, step: String) {
        self.steps.lock().unwrap().push(step);
    }

    /// All files below the test's folder, without the lock.
    pub(crate) fn all_files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => walk(&path, files),
                    false => files.push(path),
                }
            }
        }
        let mut files = Vec::new();
        walk(self.temporary.path(), &mut files);
        files.retain(|file| !file.ends_with(".lock"));
        files.sort();
        files
    }
}

pub(crate) fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| u8::try_from(at * 7 % 251).unwrap())
        .collect()
}

pub(crate) fn file(name: &'static str, contents: &[u8]) -> ModelFile {
    ModelFile {
        name,
        bytes: contents.len() as u64,
        sha256: hash(contents).leak(),
        hub: None,
        packages: &[],
    }
}

pub(crate) fn model(files: Vec<ModelFile>) -> &'static Model {
    leaked(Model {
        name: "small",
        purpose: Purpose::Voice,
        languages: Languages::All,
        files: files.leak(),
        upstream: "a test",
        licence: "MIT",
        memory_mb: 1,
    })
}

/// A model of one file, which the hub and packages have.
pub(crate) fn published(contents: &[u8], packages: Vec<PackageMember>) -> &'static Model {
    model(vec![ModelFile {
        hub: Some(HubFile {
            repository: "voices/small",
            revision: "v1",
            path: "voice.bin",
        }),
        packages: packages.leak(),
        ..file("voice.bin", contents)
    }])
}

/// A package with these members.
pub(crate) fn wheel(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, contents) in members {
        zip.start_file(*name, options).unwrap();
        zip.write_all(contents).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A member of a package whose file is this one.
pub(crate) fn member(archive: &'static str, packed: &[u8], path: &'static str) -> PackageMember {
    PackageMember {
        registry: Registry::PyPi,
        project: "voices",
        archive,
        bytes: packed.len() as u64,
        sha256: hash(packed).leak(),
        path,
    }
}

impl Setting {
    /// Lists packages in the index and has them.
    pub(crate) fn put_packages(&self, packages: &[(&str, &[u8])]) {
        let mut listed = Vec::new();
        for (wheel, packed) in packages {
            self.server.put(&format!("/files/{wheel}"), packed);
            listed.push(format!(
                r#"{{"filename": "{wheel}", "url": "../../files/{wheel}"}}"#
            ));
        }
        let index = format!(r#"{{"files": [{}]}}"#, listed.join(", "));
        self.server.put("/simple/voices/", index.as_bytes());
    }
}
