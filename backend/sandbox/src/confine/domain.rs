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

/// Where systems have programs, libraries and their data. The rest of `/usr`, such as `/usr/local/etc`, belongs to whoever runs it.
pub(crate) const SYSTEM: [&str; 20] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/libexec",
    "/usr/local/share",
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
/// What belongs to programs of an installation, by its folder `bin`.
const INSTALLED: [&str; 5] = ["bin", "lib", "lib64", "libexec", "share"];
/// The file that makes a folder a virtual environment of Python.
const ENVIRONMENT: &str = "pyvenv.cfg";
/// The folder of a user with programs, libraries and the data of all else.
const OF_USER: &str = ".local";
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
        Confined::Launcher { readable, .. } => (readable, None),
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
/// elsewhere, or in the `bin` of a person, which may lie among anything, its file alone.
pub(crate) fn installation(program: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    // A link to it may lie among anything, too.
    let mut next = fs::canonicalize(program).ok();
    for _ in 0..MOST_INTERPRETERS {
        let Some(program) = next else { break };
        // The interpreter of a virtual environment is a link, and looks for what is installed beside that.
        let environment = prefix(&program).filter(|prefix| prefix.join(ENVIRONMENT).is_file());
        if let Some(environment) = environment {
            add(&environment.join(ENVIRONMENT), hidden, &mut paths);
            installed(environment, hidden, &mut paths);
        }
        if let Ok(real) = fs::canonicalize(&program) {
            match prefix(&real) {
                Some(prefix) => installed(prefix, hidden, &mut paths),
                None => add(&real, hidden, &mut paths),
            }
        }
        next = interpreter(&program);
    }
    paths.sort();
    paths.dedup();
    paths
}

/// Returns the folder that a program is installed in: the one of its `bin`, unless a person keeps all else there.
fn prefix(program: &Path) -> Option<&Path> {
    let folder = program.parent()?;
    let prefix = folder.parent()?;
    let is_bin = folder.file_name() == Some(OsStr::new("bin"));
    (is_bin && !is_personal(prefix)).then_some(prefix)
}

/// True for the home of a person, and for the folder in it that has programs.
fn is_personal(prefix: &Path) -> bool {
    let of_homes = prefix.parent().and_then(Path::file_name) == Some(OsStr::new("home"));
    of_homes || prefix == Path::new("/root") || prefix.file_name() == Some(OsStr::new(OF_USER))
}

fn installed(prefix: &Path, hidden: &[PathBuf], paths: &mut Vec<PathBuf>) {
    for name in INSTALLED {
        add(&prefix.join(name), hidden, paths);
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

    /// As `pip install --user` and `pipx` install one in the home of a person.
    #[test]
    fn a_program_of_a_person_reads_its_own_environment_and_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let environment = root.join(".local/share/pipx/venvs/tool");
        for path in [".local/bin", ".local/lib", ".local/share/keyrings"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::create_dir_all(environment.join("bin")).unwrap();
        fs::create_dir_all(environment.join("lib")).unwrap();
        fs::write(environment.join(ENVIRONMENT), "").unwrap();
        let below = |program: &Path| {
            let paths = installation(program, &[]);
            let below = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&root).ok());
            below.map(Path::to_owned).collect::<Vec<_>>()
        };
        let alone = root.join(".local/bin/alone");
        fs::write(&alone, "").unwrap();
        assert_eq!(below(&alone), [Path::new(".local/bin/alone")]);
        // Its interpreter is a link to that of the system.
        let python = environment.join("bin/python");
        std::os::unix::fs::symlink("/bin/sh", &python).unwrap();
        let tool = environment.join("bin/tool");
        fs::write(&tool, format!("#!{}\n", python.display())).unwrap();
        let link = root.join(".local/bin/tool");
        std::os::unix::fs::symlink(&tool, &link).unwrap();
        let of_tool = ["bin", "lib", ENVIRONMENT]
            .map(|name| Path::new(".local/share/pipx/venvs/tool").join(name));
        assert_eq!(below(&link), of_tool);
        // A link that is an interpreter, and no environment's, gives nothing of where it lies.
        fs::create_dir_all(root.join("tools/bin")).unwrap();
        fs::create_dir_all(root.join("tools/share")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.join("tools/bin/python")).unwrap();
        let script = root.join("script");
        let line = format!("#!{}\n", root.join("tools/bin/python").display());
        fs::write(&script, line).unwrap();
        assert_eq!(below(&script), [Path::new("script")]);
    }

    #[test]
    fn homes_are_personal_and_installations_are_not() {
        for prefix in [
            "/root",
            "/home/ada",
            "/var/home/ada",
            "/home/ada/.local",
            "/root/.local",
        ] {
            assert!(is_personal(Path::new(prefix)), "{prefix}");
        }
        for prefix in [
            "/usr",
            "/usr/local",
            "/opt/tesseract",
            "/home/ada/.local/share/pipx/venvs/yt-dlp",
            "/root/.pyenv/versions/3.13.1",
        ] {
            assert!(!is_personal(Path::new(prefix)), "{prefix}");
        }
    }

    #[test]
    fn of_the_system_settings_and_data_of_the_administrator_are_not_read() {
        let paths = systems(&[]);
        for path in [
            "/usr",
            "/usr/local",
            "/usr/local/etc",
            "/usr/src",
            "/etc",
            "/opt",
            "/root",
        ] {
            let Ok(real) = fs::canonicalize(path) else {
                continue;
            };
            let around = paths.iter().find(|readable| real.starts_with(readable));
            assert_eq!(around, None, "{path}");
        }
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
