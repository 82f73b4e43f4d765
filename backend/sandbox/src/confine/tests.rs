//! The filters, as the kernel would run them, and what a confined process can really do.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    process::{Command, Stdio},
};

use clap::Parser;
use rustix::process::{getppid, test_kill_process};
use seccompiler::BpfProgram;

use super::*;
use crate::child::{ChildLimits, ProgramArguments, become_program};

const PROCESS: i32 = 4_711;
const OTHER: u64 = 42;
const GROUP: i32 = 4_712;
const ALLOWED: u32 = 0x7fff_0000;
const REFUSED: u32 = 0x0005_0000 | libc::ENOSYS.cast_unsigned();
/// The numbers of the kernel's architectures, as it tells them to filters.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else {
    0xc000_00b7
};
/// Calls of the 32-bit pointers' interface begin there.
const X32: i64 = 0x4000_0000;

/// What the filter answers to a call with these arguments.
fn answer(filter: &BpfProgram, call: i64, arguments: &[u64]) -> u32 {
    let mut data = Vec::new();
    data.extend(u32::try_from(call).unwrap().to_le_bytes());
    data.extend(ARCHITECTURE.to_le_bytes());
    data.extend(0_u64.to_le_bytes());
    for at in 0..6 {
        data.extend(arguments.get(at).copied().unwrap_or(0).to_le_bytes());
    }
    let word = |at: u32| {
        let at = at as usize;
        u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
    };
    let (mut at, mut value) = (0_usize, 0_u32);
    loop {
        let step = &filter[at];
        at += 1;
        let jump = |is: bool| usize::from(if is { step.jt } else { step.jf });
        match step.code {
            0x20 => value = word(step.k),
            0x54 => value &= step.k,
            0x05 => at += step.k as usize,
            0x15 => at += jump(value == step.k),
            0x25 => at += jump(value > step.k),
            0x35 => at += jump(value >= step.k),
            0x45 => at += jump(value & step.k != 0),
            0x06 => return step.k,
            code => panic!("no such step: {code:#x}"),
        }
    }
}

fn everybody() -> [(&'static str, BpfProgram); 4] {
    let program = |port| Confined::Program {
        readable: Vec::new(),
        port,
    };
    let launcher = Confined::Launcher {
        readable: Vec::new(),
        group: GROUP,
    };
    [
        ("decoder", Confined::Decoder),
        ("program", program(None)),
        ("fetching program", program(Some(4_000))),
        ("launcher", launcher),
    ]
    .map(|(name, whom)| (name, calls::filter(&whom, PROCESS).unwrap()))
}

#[test]
fn nobody_reaches_other_processes_or_changes_files() {
    let own = u64::from(PROCESS.cast_unsigned());
    for (name, filter) in everybody() {
        let refused = |call: i64, arguments: &[u64]| {
            let answer = answer(&filter, call, arguments);
            assert_eq!(answer, REFUSED, "{name}: {call} {arguments:?}");
        };
        for call in [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_process_madvise,
            libc::SYS_pidfd_getfd,
            libc::SYS_pidfd_send_signal,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_tkill,
            libc::SYS_kcmp,
            libc::SYS_clone3,
            libc::SYS_unlinkat,
            libc::SYS_renameat2,
            libc::SYS_linkat,
            libc::SYS_mkdirat,
            libc::SYS_fchmodat,
            libc::SYS_truncate,
            libc::SYS_ftruncate,
            libc::SYS_openat2,
            libc::SYS_open_by_handle_at,
            libc::SYS_execveat,
            libc::SYS_socketpair,
            libc::SYS_bind,
            libc::SYS_listen,
            libc::SYS_sendmmsg,
            libc::SYS_io_uring_setup,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_setrlimit,
            libc::SYS_setuid,
            libc::SYS_setsid,
            libc::SYS_setpgid,
            libc::SYS_seccomp,
            libc::SYS_getpid + X32,
            libc::SYS_ptrace + X32,
        ] {
            refused(call, &[]);
        }
        refused(libc::SYS_kill, &[OTHER, 9]);
        refused(libc::SYS_kill, &[u64::MAX, 9]);
        refused(libc::SYS_tgkill, &[OTHER, OTHER, 9]);
        // A group of its own, and that of another.
        for (process, group) in [
            (0, own),
            (0, OTHER),
            (OTHER, u64::from(GROUP.cast_unsigned())),
        ] {
            refused(libc::SYS_setpgid, &[process, group]);
        }
        // A process as `fork` makes it.
        refused(libc::SYS_clone, &[libc::SIGCHLD as u64]);
        refused(libc::SYS_prlimit64, &[OTHER, 0, 0, 1]);
        refused(libc::SYS_prlimit64, &[0, 0, 1, 0]);
        refused(libc::SYS_fcntl, &[0, libc::F_SETOWN as u64, OTHER]);
        refused(libc::SYS_prctl, &[libc::PR_SET_DUMPABLE as u64, 1]);
        // Of a unix socket, a datagram, another family and another kind of TCP.
        for (family, kind, protocol) in [(1, 1, 0), (2, 2, 0), (10, 1, 0), (16, 3, 0), (2, 1, 262)]
        {
            refused(libc::SYS_socket, &[family, kind, protocol]);
        }
        let data_with_handshake = libc::MSG_FASTOPEN as u64;
        refused(libc::SYS_sendto, &[3, 0, 0, data_with_handshake]);
        refused(libc::SYS_sendmsg, &[3, 0, data_with_handshake]);

        let allowed = |call: i64, arguments: &[u64]| {
            let answer = answer(&filter, call, arguments);
            assert_eq!(answer, ALLOWED, "{name}: {call} {arguments:?}");
        };
        for call in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_mmap,
            libc::SYS_futex,
        ] {
            allowed(call, &[]);
        }
        match name {
            // To what it starts, its own process is the server.
            "launcher" => refused(libc::SYS_tgkill, &[own, own, 9]),
            _ => allowed(libc::SYS_tgkill, &[own, own, 6]),
        }
        // A thread as the C library makes it.
        allowed(libc::SYS_clone, &[0x003d_0f00]);
    }
}

#[test]
fn each_has_what_it_needs_alone() {
    let [decoder, program, fetching, launcher] = everybody().map(|(_, filter)| filter);
    let (open_at, read, write) = (libc::SYS_openat, 0_u64, libc::O_WRONLY as u64);
    let create = (libc::O_CREAT | libc::O_RDONLY) as u64;
    let cut = libc::O_TRUNC as u64;
    let temporary = libc::O_TMPFILE as u64;
    let folder = (libc::O_DIRECTORY | libc::O_CLOEXEC) as u64;
    let group = u64::from(GROUP.cast_unsigned());
    let starts = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as u64;
    for (call, arguments, who) in [
        (open_at, vec![0, 0, read], [false, true, true, true]),
        (open_at, vec![0, 0, folder], [false, true, true, true]),
        (open_at, vec![0, 0, write], [false, false, false, true]),
        (open_at, vec![0, 0, create], [false, false, false, true]),
        (open_at, vec![0, 0, cut], [false, false, false, true]),
        (open_at, vec![0, 0, temporary], [false, false, false, true]),
        (libc::SYS_execve, vec![], [false, true, true, true]),
        (libc::SYS_clone, vec![starts], [false, false, false, true]),
        (
            libc::SYS_setpgid,
            vec![0, group],
            [false, false, false, true],
        ),
        (libc::SYS_socket, vec![2, 1, 0], [false, false, true, false]),
        (
            libc::SYS_socket,
            vec![2, 1 | 0o2_000_000, 6],
            [false, false, true, false],
        ),
        (libc::SYS_connect, vec![], [false, false, true, false]),
        (libc::SYS_sendto, vec![], [false, false, true, false]),
    ] {
        let answers = [&decoder, &program, &fetching, &launcher]
            .map(|filter| answer(filter, call, &arguments) == ALLOWED);
        assert_eq!(answers, who, "{call} {arguments:?}");
    }
}

/// How the tests that are run as a process of their own are told what to do.
const TASK: &str = "COLLOQUY_CONFINE_TEST";
const SECRET: [u8; 8] = *b"hunter2!";

/// Runs a test of this file as a process, with words for it. Returns what it printed.
fn process(test: &str, words: &[String]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("confine::tests::{test}")])
        // With one thread, the name of the test stands before what it prints.
        .args(["--ignored", "--nocapture", "--test-threads=2"])
        .env(TASK, words.join("\n"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&printed).into_owned()
}

fn words() -> Vec<String> {
    let words = std::env::var(TASK).unwrap();
    words.lines().map(str::to_owned).collect()
}

/// The lines of a process that tell what it could do.
fn told(printed: &str) -> Vec<(&str, bool)> {
    let lines = printed.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter_map(|(what, how)| match how.split(' ').next()? {
            "possible" => Some((what, true)),
            "refused" => Some((what, false)),
            _ => None,
        })
        .collect()
}

#[test]
#[ignore = "a process that another test runs"]
fn a_decoder_that_was_taken_over() {
    let [file, port]: [String; 2] = words().try_into().unwrap();
    let parent = getppid().unwrap();
    assert_eq!(confine(&Confined::Decoder).unwrap(), []);
    let tell = |what: &str, result: io::Result<()>| match result {
        Ok(()) => println!("{what}: possible"),
        Err(error) => println!("{what}: refused {error}"),
    };
    tell("signal", test_kill_process(parent).map_err(Into::into));
    let memory = format!("/proc/{}/mem", parent.as_raw_nonzero());
    tell("memory", File::open(memory).map(drop));
    tell("process", Command::new("/bin/true").status().map(drop));
    tell("delete", fs::remove_file(&file));
    tell("read", fs::read(&file).map(drop));
    tell("write", fs::write(&file, "gone"));
    let port: u16 = port.parse().unwrap();
    tell(
        "tcp",
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(drop),
    );
    tell("udp", UdpSocket::bind("127.0.0.1:0").map(drop));
    tell("unix", UnixStream::pair().map(drop));
    // What is left.
    let sum = thread::spawn(|| vec![1_u64; 1_000_000].iter().sum::<u64>());
    tell(
        "thread",
        sum.join()
            .map(drop)
            .map_err(|_| io::ErrorKind::Other.into()),
    );
}

#[test]
fn a_decoder_can_do_nothing_but_compute() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, SECRET).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let words = [file.to_str().unwrap().to_owned(), port.to_string()];
    let printed = process("a_decoder_that_was_taken_over", &words);
    let expected = [
        ("signal", false),
        ("memory", false),
        ("process", false),
        ("delete", false),
        ("read", false),
        ("write", false),
        ("tcp", false),
        ("udp", false),
        ("unix", false),
        ("thread", true),
    ];
    assert_eq!(told(&printed), expected, "{printed}");
    assert_eq!(fs::read(&file).unwrap(), SECRET);
}

#[derive(Parser)]
struct BecomeProgram {
    #[command(flatten)]
    limits: ChildLimits,
    #[command(flatten)]
    program: ProgramArguments,
}

#[test]
#[ignore = "a process that another test runs"]
fn a_process_that_becomes_a_program() {
    let words = ["test".to_owned()].into_iter().chain(words());
    let become_ = BecomeProgram::parse_from(words);
    let error = become_program(&become_.limits, &become_.program).unwrap_err();
    panic!("{error:#}");
}

/// What a program tries that was taken over, in a language that reaches every system call.
const ESCAPES: &str = r#"
my ($parent, $address, $data, $own, $open, $closed, $ptrace, $readv) = @ARGV;
$| = 1;
sub tell_of { my ($what, $is) = @_; print "$what: ", ($is ? "possible" : "refused $!"), "\n"; }
sub reach {
    my ($port) = @_;
    socket(my $client, 2, 1, 6) or return 0;
    return connect($client, pack("S n C4 x8", 2, $port, 127, 0, 0, 1));
}
tell_of("trace", syscall($ptrace, 16, $parent, 0, 0) == 0);
my $buffer = "\0" x 8;
my ($local, $remote) = (pack("P Q", $buffer, 8), pack("Q Q", $address, 8));
tell_of("memory", syscall($readv, $parent, $local, 1, $remote, 1, 0) == 8);
tell_of("memory as a file", open(my $memory, "<", "/proc/$parent/mem"));
tell_of("environment", open(my $environment, "<", "/proc/$parent/environ"));
tell_of("signal", kill(0, $parent));
my $fork = fork; exit if defined $fork && $fork == 0;
tell_of("process", defined $fork);
tell_of("hidden", open(my $hidden, "<", "$data/secret"));
tell_of("settings", open(my $settings, "<", "/etc/shadow"));
tell_of("delete", unlink("$own/beside"));
tell_of("write", open(my $write, ">>", "$own/beside"));
tell_of("make", open(my $make, ">", "$own/new"));
tell_of("rename", rename("$own/beside", "$own/new"));
tell_of("unix", socket(my $unix, 1, 1, 0));
tell_of("udp", socket(my $udp, 2, 2, 17));
tell_of("tcp elsewhere", reach($closed));
tell_of("tcp to its port", reach($open));
tell_of("read what is beside it", open(my $beside, "<", "$own/beside"));
tell_of("read itself", open(my $itself, "<", "/proc/self/status"));
"#;

#[test]
fn a_program_reads_what_is_its_own_and_reaches_one_port() {
    let folder = tempfile::tempdir().unwrap();
    let root = &folder.path().join("bin");
    fs::create_dir(root).unwrap();
    // The data lies within the folder of the program.
    let data = root.join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("secret"), SECRET).unwrap();
    fs::write(root.join("beside"), SECRET).unwrap();
    let script = root.join("program");
    fs::write(&script, format!("#!/usr/bin/env perl\n{ESCAPES}")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [open, elsewhere] = listeners
        .each_ref()
        .map(|it| it.local_addr().unwrap().port().to_string());
    let secret = Box::new(SECRET);
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for has_network in [true, false] {
        let mut words: Vec<String> = ["--memory-bytes", "500000000", "--cpu-seconds", "10"]
            .map(str::to_owned)
            .into();
        words.extend(["--hidden".to_owned(), path(&data.canonicalize().unwrap())]);
        if has_network {
            words.extend(["--port".to_owned(), open.clone()]);
        }
        words.extend([
            "--".to_owned(),
            path(&script),
            std::process::id().to_string(),
        ]);
        words.push((secret.as_ptr().addr()).to_string());
        words.extend([path(&data), path(root), open.clone(), elsewhere.clone()]);
        words.extend([libc::SYS_ptrace, libc::SYS_process_vm_readv].map(|call| call.to_string()));
        let printed = process("a_process_that_becomes_a_program", &words);
        let told = told(&printed);
        let possible: Vec<&str> = told.iter().filter(|it| it.1).map(|it| it.0).collect();
        assert_eq!(told.len(), 18, "{printed}");
        let reading = ["read what is beside it", "read itself"];
        match has_network {
            true => assert_eq!(
                possible,
                [&["tcp to its port"], &reading[..]].concat(),
                "{printed}"
            ),
            false => assert_eq!(possible, reading, "{printed}"),
        }
    }
    assert_eq!(fs::read(root.join("beside")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(root).unwrap().count(), 3);
}

/// Reads each of the files that it is given.
const READS: &str = r#"
$| = 1;
for my $file (@ARGV) {
    print "$file: ", (open(my $read, "<", $file) ? "possible" : "refused $!"), "\n";
}
"#;

/// As `pipx` installs one, in the home of a person, with the data of the server within its own folder.
#[test]
fn a_program_reads_nothing_around_its_environment_and_nothing_hidden_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap().join("home/ada");
    let environment = home.join(".local/share/pipx/venvs/tool");
    let data = environment.join("lib/data");
    let module = environment.join("lib/module");
    let mut files = vec![
        home.join(".ssh/key"),
        home.join(".config/colloquy.toml"),
        home.join(".local/share/keyrings/secret"),
        data.join("secret"),
        environment.join("secret"),
        module.clone(),
    ];
    for file in &files {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, SECRET).unwrap();
    }
    let server = format!("/proc/{}/environ", std::process::id());
    files.extend([PathBuf::from("/etc/shadow"), PathBuf::from(server)]);
    let script = environment.join("bin/tool");
    fs::create_dir(environment.join("bin")).unwrap();
    fs::write(environment.join("pyvenv.cfg"), "").unwrap();
    fs::write(&script, format!("#!/usr/bin/env perl\n{READS}")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    // Where the path has it.
    let link = home.join(".local/bin/tool");
    fs::create_dir(home.join(".local/bin")).unwrap();
    std::os::unix::fs::symlink(&script, &link).unwrap();
    let mut words: Vec<String> = ["--memory-bytes", "500000000", "--cpu-seconds", "10"]
        .map(str::to_owned)
        .into();
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    words.extend(["--hidden".to_owned(), path(&data), "--".to_owned()]);
    words.push(path(&link));
    words.extend(files.iter().map(|file| path(file)));
    let printed = process("a_process_that_becomes_a_program", &words);
    let expected: Vec<_> = files
        .iter()
        .map(|file| (file.to_str().unwrap(), *file == module))
        .collect();
    assert_eq!(told(&printed), expected, "{printed}");
}

#[test]
fn finding_out_what_the_kernel_lacks_does_not_confine_this_process() {
    missing().unwrap();
    assert!(TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).is_ok());
}
