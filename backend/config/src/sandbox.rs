//! The processes that decode what is not trusted.

use std::path::PathBuf;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// The processes that decode what is not trusted, such as the files of partners.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// How many there are at once; 0: as many as the machine has cores.
    pub processes: u32,
    /// The program that is run, a `colloquy` of this version; unset: the running one.
    pub program: Option<PathBuf>,
    /// Files and folders that helper programs (yt-dlp, Tesseract) may read besides what belongs to the system and to themselves.
    pub readable: Vec<PathBuf>,
}

impl SandboxConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(self.processes <= 1_024, "sandbox.processes: at most 1024");
        if let Some(program) = &self.program {
            ensure!(program.is_absolute(), "sandbox.program: an absolute path");
        }
        for path in &self.readable {
            ensure!(path.is_absolute(), "sandbox.readable: absolute paths");
        }
        Ok(())
    }
}
