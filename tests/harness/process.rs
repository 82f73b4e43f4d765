//! The real binary, as an operator runs it.

use std::{
    path::PathBuf,
    process::{Command, Output},
    sync::OnceLock,
};

use crate::TestDatabase;

/// The binary of this checkout: `COLLOQUY_TEST_BINARY`, or built now, which is quick when nothing changed.
pub fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("COLLOQUY_TEST_BINARY") {
            return path.into();
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args([
                "build",
                "-p",
                "colloquy-backend",
                "--bin",
                "colloquy",
                "--message-format=json",
            ])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .output()
            .expect("cargo runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let messages = String::from_utf8_lossy(&output.stdout);
        messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
            .expect("cargo names the binary")
    })
}

/// A command on this database, without the settings of the environment.
pub fn command(database: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("COLLOQUY_") {
            command.env_remove(name);
        }
    }
    let config = database.config();
    command.env("COLLOQUY_STORE_DIR", &config.dir);
    if let Some(url) = &config.database_url {
        command.env("COLLOQUY_STORE_DATABASE_URL", url.reveal());
    }
    command
}

/// Runs a command to its end.
pub fn run(database: &TestDatabase, arguments: &[&str]) -> Output {
    command(database, arguments)
        .output()
        .expect("the binary runs")
}

/// Runs a command that must succeed, and gives what it printed.
#[track_caller]
pub fn run_ok(database: &TestDatabase, arguments: &[&str]) -> String {
    let output = run(database, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}
