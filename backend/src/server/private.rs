//! Files and folders of the server that helper programs must not read.

use anyhow::{Context as _, bail};

use crate::{config::Config, sandbox};

/// Hides the server's own files and folders from helper programs.
///
/// # Errors
/// When the settings name something for helper programs that lies in one of these folders, and so could not be read.
pub(crate) fn hide(config: &Config) -> anyhow::Result<()> {
    let paths = config.private_paths();
    sandbox::hide(paths.clone()).context("the files of the server")?;
    let readable = &config.sandbox.readable;
    let named = readable.iter().map(|path| ("sandbox.readable", path));
    let program = config.knowledge.yt_dlp.iter();
    let program = program.map(|path| ("knowledge.yt_dlp", path));
    for (setting, path) in named.chain(program) {
        if let Some(folder) = sandbox::hidden_around(path).context(setting)? {
            bail!(
                "{setting}: {} lies in {}, which is the server's own and hidden from helper programs; move it to another place",
                path.display(),
                folder.display()
            );
        }
    }
    for path in paths {
        // Data in a folder of programs is no mistake that shows otherwise.
        if let Some(folder) = sandbox::readable_around(&path, readable)? {
            tracing::warn!(
                "{} lies in {}, which helper programs read: it is hidden from them, and so is what is added beside it after they started; \
                 a folder such as /var/lib/colloquy is better",
                path.display(),
                folder.display()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_helper_programs_need_is_refused_within_the_data() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.store.dir = folder.path().join("data");
        config.file = Some(folder.path().join("colloquy.toml"));
        hide(&config).unwrap();
        let refused = |config: &Config| hide(config).unwrap_err().to_string();

        let inside: PathBuf = config.store.dir.join("bin/yt-dlp");
        config.knowledge.yt_dlp = Some(inside);
        let reason = refused(&config);
        assert!(reason.starts_with("knowledge.yt_dlp: "), "{reason}");
        config.knowledge.yt_dlp = Some(folder.path().join("yt-dlp"));
        hide(&config).unwrap();

        config.sandbox.readable = config.file.iter().cloned().collect();
        let reason = refused(&config);
        assert!(reason.starts_with("sandbox.readable: "), "{reason}");
        config.sandbox.readable = vec![folder.path().to_owned()];
        hide(&config).unwrap();
    }
}
