//! A platform of videos, and the program that looks through it, which prints what yt-dlp prints.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Prints a file by the shell alone: a program that is confined starts no other.
pub const PRINT: &str = "print() { while IFS= read -r line || [ -n \"$line\" ]; do printf '%s\\n' \"$line\"; done < \"$1\"; }\n";

/// A platform: the lists of channels are files, which the program prints; a list without a file is one that the channel does not have. The
/// program cannot write anything.
#[derive(Debug)]
pub struct Platform {
    folder: TempDir,
}

impl Platform {
    /// One that shows nothing.
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        let script = format!(
            "#!/bin/sh\n{PRINT}for last; do :; done\n\
             case \"$last\" in\n*watch*) echo 'ERROR: [x] y: Private video' >&2; exit 1;;\nesac\n\
             case \" $* \" in *\" --flat-playlist \"*) ;; *) exit 9;; esac\n\
             while [ -e {place}/hold ]; do :; done\n\
             if [ -e {place}/down ]; then print {place}/down >&2; exit 1; fi\n\
             list={place}/${{last#https://www.youtube.com/}}.json\n\
             if [ -e \"$list\" ]; then print \"$list\"; else echo 'ERROR: [x] y: This channel does not have a list' >&2; exit 1; fi\n"
        );
        let program = folder.path().join("yt-dlp");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    /// Where the lists are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program.
    pub fn program(&self) -> PathBuf {
        self.folder.path().join("yt-dlp")
    }

    /// Has the program print this for a list.
    pub fn write(&self, list: &str, printed: &str) {
        let path = self.folder.path().join(format!("{list}.json"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, printed).unwrap();
    }

    /// A list of a channel: each video by its id and how it is live.
    pub fn has(&self, list: &str, channel: &str, videos: &[(&str, Option<&str>)]) {
        let entry = |(id, live): &(&str, Option<&str>)| json!({"_type": "url", "id": id, "title": format!("Video {id}"), "live_status": live});
        let entries: Vec<Value> = videos.iter().map(entry).collect();
        let printed = json!({"_type": "playlist", "channel_id": channel, "entries": entries});
        self.write(list, &printed.to_string());
    }

    /// Answers nothing until [`Self::lets_go`].
    pub fn holds(&self) {
        fs::write(self.folder.path().join("hold"), "").unwrap();
    }

    /// Returns true while the program runs.
    pub fn is_asked(&self) -> bool {
        let program = self.program();
        let program = program.to_str().unwrap();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut commands = processes.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
        commands.any(|command| String::from_utf8_lossy(&command).contains(program))
    }

    /// Answers again.
    pub fn lets_go(&self) {
        fs::remove_file(self.folder.path().join("hold")).unwrap();
    }

    /// Answers nothing but this failure, or is up again.
    pub fn is_down(&self, why: Option<&str>) {
        let path = self.folder.path().join("down");
        match why {
            Some(why) => fs::write(path, format!("ERROR: [x] y: {why}\n")).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    }
}
