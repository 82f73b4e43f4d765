//! The files, ports and signals that are left to a confined process.
//!
//! A domain knows no exceptions below a folder that may be read. So a folder with what must stay hidden in it, the server's data, is replaced
//! by what else is in it.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope, make_bitflags,
    path_beneath_rules,
};

use super::{Confined, Protection};
use crate::program_on_path;

/// All that the newest known kernels tell apart; an older one does what it can.
const NEWEST: ABI = ABI::V10;
/// The first that knows TCP ports.
const WITH_TCP: ABI = ABI::V4;

/// Where systems have programs, libraries and their data.
const SYSTEM: [&str; 8] = [
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];
/// What programs read of the settings of a system. The rest of `/etc` may hold secrets.
const SETTINGS: [&str; 14] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/mime.types",
];
const DEVICES: [&str; 3] = ["/dev/zero", "/dev/urandom", "/dev/random"];
/// What is written there is gone, and reading finds nothing.
const NULL: &str = "/dev/null";
/// What belongs to programs in a `bin` that stands beside.
const BESIDE_PROGRAMS: [&str; 6] = ["lib", "lib64", "libexec", "share", "bin", "pyvenv.cfg"];
/// The longest first line of a script that is looked at.
const LONGEST_LINE: u64 = 512;
/// How many interpreters of interpreters are followed.
const MOST_INTERPRETERS: usize = 4;

/// Enters the domain, and returns what the kernel lacks for it.
pub(super) fn enter(whom: &Confined) -> io::Result<Vec<Protection>> {
    let entered = restrict(whom).map_err(io::Error::other)?;
    Ok(match entered {
        LandlockStatus::Available { effective_abi, .. } if effective_abi >= WITH_TCP => Vec::new(),
        LandlockStatus::Available { .. } => vec![Protection::LandlockTcp],
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => {
            vec![Protection::Landlock, Protection::LandlockTcp]
        }
    })
}

fn restrict(whom: &Confined) -> Result<LandlockStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let (readable, port): (&[PathBuf], _) = match whom {
        Confined::Decoder => (&[], None),
        Confined::Program { readable, port } => (readable, *port),
        Confined::Launcher { readable } => (readable, None),
    };
    if !matches!(whom, Confined::Decoder) {
        let read = AccessFs::from_read(NEWEST);
        let devices = make_bitflags!(AccessFs::{ReadFile | WriteFile});
        rules = rules
            .add_rules(path_beneath_rules(readable, read))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile))?
            .add_rules(path_beneath_rules([NULL], devices))?;
    }
    if let Some(port) = port {
        rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
    }
    Ok(rules.restrict_self()?.landlock)
}

/// What belongs to the system and to nobody's data.
pub(crate) fn systems(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for path in SYSTEM.iter().chain(&SETTINGS) {
        add(Path::new(path), hidden, &mut paths);
    }
    paths
}

/// What a setting lets a program read, without what is hidden.
pub(crate) fn named(named: &[PathBuf], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for path in named {
        add(path, hidden, &mut paths);
    }
    paths
}

/// What belongs to a program and to the interpreters that it names: those in a folder `bin`, and what is installed beside that; of a program
/// elsewhere, which may lie among anything, its file alone.
pub(crate) fn installation(program: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    // A link to it may lie among anything, too.
    let mut next = fs::canonicalize(program).ok();
    for _ in 0..MOST_INTERPRETERS {
        let Some(program) = next else { break };
        beside(&program, hidden, &mut paths);
        // An interpreter of a virtual environment is a link, and looks for its settings beside that.
        if let Ok(real) = fs::canonicalize(&program) {
            beside(&real, hidden, &mut paths);
        }
        next = interpreter(&program);
    }
    paths.sort();
    paths.dedup();
    paths
}

fn beside(program: &Path, hidden: &[PathBuf], paths: &mut Vec<PathBuf>) {
    let folder = program.parent();
    let is_bin = |folder: &&Path| folder.file_name().is_some_and(|name| name == "bin");
    let Some(folder) = folder.filter(is_bin) else {
        return add(program, hidden, paths);
    };
    add(folder, hidden, paths);
    for name in BESIDE_PROGRAMS {
        let beside = folder.parent().map(|installed| installed.join(name));
        beside
            .into_iter()
            .for_each(|path| add(&path, hidden, paths));
    }
}

/// Adds a path, or what is below it where something hidden is, too.
fn add(path: &Path, hidden: &[PathBuf], paths: &mut Vec<PathBuf>) {
    // What does not exist cannot be read.
    let Ok(real) = fs::canonicalize(path) else {
        return;
    };
    if hidden.iter().any(|hidden| real.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(&real)) {
        return paths.push(real);
    }
    for entry in fs::read_dir(&real).into_iter().flatten().flatten() {
        // A link may lead out of the folder.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            add(&entry.path(), hidden, paths);
        }
    }
}

/// The interpreter that the first line of a script names; of `env`, the program that it is to find.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let file = File::open(program).ok()?;
    let mut line = Vec::new();
    let mut begin = BufReader::new(file.take(LONGEST_LINE));
    begin.read_until(b'\n', &mut line).ok()?;
    let line = str::from_utf8(line.strip_prefix(b"#!")?).ok()?;
    let mut words = line.split_whitespace();
    let named = Path::new(words.next()?);
    if named.file_name() != Some(OsStr::new("env")) {
        return Some(named.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    program_on_path(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_and_what_is_beside_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["bin", "lib", "share/colloquy/data", "share/voices"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        let program = root.join("bin/program");
        fs::write(&program, "#!/usr/bin/env -S sh -e\n").unwrap();
        std::os::unix::fs::symlink(root.join("share"), root.join("share/colloquy/loop")).unwrap();
        let found = |hidden: &str| {
            let paths = installation(&program, &[root.join(hidden)]);
            let mut below: Vec<_> = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&root).ok())
                .map(|path| path.to_str().unwrap().to_owned())
                .collect();
            below.sort();
            (below, paths)
        };
        let (below, paths) = found("share/colloquy/data");
        assert_eq!(below, ["bin", "lib", "share/voices"]);
        // The shell that it asks for.
        let shell = interpreter(&program).unwrap().canonicalize().unwrap();
        assert!(
            paths.iter().any(|path| shell.starts_with(path)),
            "{paths:?}"
        );
        assert_eq!(found("elsewhere").0, ["bin", "lib", "share"]);
        assert_eq!(found("bin").0, ["lib", "share"]);
    }

    #[test]
    fn a_program_among_other_files_reads_none_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["installed/bin", "installed/lib", "home/bin", "home/share"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::write(root.join("home/secret"), "").unwrap();
        let below = |program: &str| {
            let paths = installation(&root.join(program), &[]);
            let below = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&root).ok());
            below.map(Path::to_owned).collect::<Vec<_>>()
        };
        fs::write(root.join("home/program"), "").unwrap();
        assert_eq!(below("home/program"), [Path::new("home/program")]);
        // As `pipx` installs one: a link to it lies in the folder of a user.
        fs::write(root.join("installed/bin/program"), "").unwrap();
        let (program, link) = (
            root.join("installed/bin/program"),
            root.join("home/bin/program"),
        );
        std::os::unix::fs::symlink(program, link).unwrap();
        let installed = ["installed/bin", "installed/lib"].map(Path::new);
        assert_eq!(below("home/bin/program"), installed);
    }

    #[test]
    fn interpreters_are_found_by_the_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        for (line, expected) in [
            ("#!/bin/sh -e\n", Some("/bin/sh")),
            ("#! /opt/python \n", Some("/opt/python")),
            ("#!/usr/bin/env no-such-program\n", None),
            ("\u{7f}ELF", None),
            ("", None),
        ] {
            fs::write(&script, line).unwrap();
            assert_eq!(
                interpreter(&script).as_deref(),
                expected.map(Path::new),
                "{line}"
            );
        }
    }
}
