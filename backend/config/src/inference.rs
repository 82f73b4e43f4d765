//! Neural models that run in this process.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Neural models that run in this process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InferenceConfig {
    /// The folder with the files of models; unset: `colloquy-models` beside the data folder. In the environment it is
    /// `COLLOQUY_MODELS_DIR`, too.
    pub models_dir: Option<PathBuf>,
    /// Threads for models, each of which computes one answer at a time; unset: one a core. What carries packets has other
    /// threads, which come first. While calls run, one of two or more is for them alone.
    pub threads: Option<u32>,
}

impl InferenceConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        if let Some(folder) = &self.models_dir {
            // One that is not there yet is made when models are pulled.
            let is_folder = match fs::metadata(folder) {
                Ok(found) => found.is_dir(),
                Err(error) => error.kind() != ErrorKind::NotADirectory,
            };
            ensure!(
                is_folder,
                "inference.models_dir: {} is no folder",
                folder.display()
            );
        }
        ensure!(
            self.threads
                .is_none_or(|threads| (1..=256).contains(&threads)),
            "inference.threads: 1 to 256"
        );
        Ok(())
    }

    /// The folder with what this node computed from the files of models, in its data folder: others may share these files, and it
    /// may not be allowed to write beside them.
    #[must_use]
    pub fn computed_folder(data: &Path) -> PathBuf {
        data.join("computed")
    }

    /// The folder with the files of models, for this data folder.
    #[must_use]
    pub fn models_folder(&self, data: &Path) -> PathBuf {
        let beside = || data.with_file_name("colloquy-models");
        self.models_dir.clone().unwrap_or_else(beside)
    }
}
