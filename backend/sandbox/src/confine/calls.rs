//! The system calls that are left to a confined process: an allow list each for decoders and for programs. Everything else is answered with
//! `ENOSYS`, after which the C library tries an older call, such as `clone` for `clone3`, whose flags a filter cannot see.

use std::{collections::BTreeMap, env::consts::ARCH, io};

use libc::{
    AF_INET, CLONE_THREAD, CLONE_VFORK, CLONE_VM, F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL,
    F_GETLK, F_SETFD, F_SETFL, F_SETLK, F_SETLKW, FIOCLEX, FIONBIO, FIONCLEX, FIONREAD,
    IPPROTO_TCP, MSG_FASTOPEN, O_ACCMODE, O_CREAT, O_TMPFILE, O_TRUNC, PR_SET_NAME, PR_SET_VMA,
    SOCK_STREAM, TCGETS, TIOCGPGRP, TIOCGWINSZ,
};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

use super::Confined;

/// What everybody needs: memory, threads, time, and what is open already.
const COMMON: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getcpu,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// What a program needs besides: to begin, to read files, and to ask who it is.
const PROGRAM: &[i64] = &[
    libc::SYS_capget,
    libc::SYS_chdir,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_execve,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fchdir,
    libc::SYS_flock,
    libc::SYS_fstatfs,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpgid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_getuid,
    libc::SYS_mincore,
    libc::SYS_newfstatat,
    libc::SYS_pipe2,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pselect6,
    libc::SYS_readlinkat,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_set_tid_address,
    libc::SYS_setitimer,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_umask,
    libc::SYS_wait4,
    libc::SYS_waitid,
];

/// What a program needs that talks to the proxy, besides making a socket and sending.
const NETWORK: &[i64] = &[
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
];

/// Older calls, which this architecture alone has.
#[cfg(target_arch = "x86_64")]
mod legacy {
    pub(super) const COMMON: &[i64] = &[libc::SYS_poll, libc::SYS_time];
    pub(super) const PROGRAM: &[i64] = &[
        libc::SYS_access,
        libc::SYS_arch_prctl,
        libc::SYS_dup2,
        libc::SYS_epoll_create,
        libc::SYS_epoll_wait,
        libc::SYS_eventfd,
        libc::SYS_getdents,
        libc::SYS_getpgrp,
        libc::SYS_getrlimit,
        libc::SYS_lstat,
        libc::SYS_pause,
        libc::SYS_pipe,
        libc::SYS_readlink,
        libc::SYS_select,
        libc::SYS_stat,
    ];
    pub(super) const OPEN: Option<i64> = Some(libc::SYS_open);
    pub(super) const VFORK: Option<i64> = Some(libc::SYS_vfork);
}

#[cfg(not(target_arch = "x86_64"))]
mod legacy {
    pub(super) const COMMON: &[i64] = &[];
    pub(super) const PROGRAM: &[i64] = &[];
    pub(super) const OPEN: Option<i64> = None;
    pub(super) const VFORK: Option<i64> = None;
}

/// `fcntl` and `ioctl` can make the kernel send signals to anybody, so that what is harmless is named.
const FILE_COMMANDS: [i32; 9] = [
    F_DUPFD,
    F_DUPFD_CLOEXEC,
    F_GETFD,
    F_GETFL,
    F_GETLK,
    F_SETFD,
    F_SETFL,
    F_SETLK,
    F_SETLKW,
];
const DEVICE_COMMANDS: [libc::Ioctl; 7] = [
    FIOCLEX, FIONBIO, FIONCLEX, FIONREAD, TCGETS, TIOCGPGRP, TIOCGWINSZ,
];

type Checked<T> = Result<T, BackendError>;

/// Calls that are allowed, some of them with certain arguments alone.
#[derive(Default)]
struct Allowed(BTreeMap<i64, Vec<SeccompRule>>);

impl Allowed {
    fn all(&mut self, calls: &[i64]) {
        self.0.extend(calls.iter().map(|call| (*call, Vec::new())));
    }

    /// Allows a call whose arguments, of 32 bits each, all are as told.
    fn when(&mut self, call: i64, arguments: &[(u8, SeccompCmpOp, u64)]) -> Checked<()> {
        let conditions = arguments.iter().map(|(at, op, value)| {
            SeccompCondition::new(*at, SeccompCmpArgLen::Dword, op.clone(), *value)
        });
        let rule = SeccompRule::new(conditions.collect::<Checked<_>>()?)?;
        self.0.entry(call).or_default().push(rule);
        Ok(())
    }

    /// Allows a call with each of these values as an argument.
    fn either(&mut self, call: i64, at: u8, values: impl IntoIterator<Item = u64>) -> Checked<()> {
        values
            .into_iter()
            .try_for_each(|value| self.when(call, &[(at, SeccompCmpOp::Eq, value)]))
    }
}

/// True for arguments that have these bits of a mask.
fn bits(mask: i32, value: i32) -> (SeccompCmpOp, u64) {
    let wide = |bits: i32| u64::from(bits.cast_unsigned());
    (SeccompCmpOp::MaskedEq(wide(mask)), wide(value))
}

/// The filter for this process.
pub(super) fn filter(whom: &Confined, process: i32) -> Checked<BpfProgram> {
    let process = u64::from(process.cast_unsigned());
    let mut allowed = Allowed::default();
    allowed.all(COMMON);
    allowed.all(legacy::COMMON);
    // Threads, and no processes.
    let (has, threads) = bits(CLONE_THREAD, CLONE_THREAD);
    allowed.when(libc::SYS_clone, &[(0, has, threads)])?;
    // Signals to itself: this is how a process aborts. What a launcher starts has its filter, and is another process.
    if !matches!(whom, Confined::Launcher { .. }) {
        allowed.either(libc::SYS_tgkill, 0, [process])?;
    }
    // Names of threads and of memory.
    let names = [PR_SET_NAME, PR_SET_VMA].map(|option| u64::from(option.cast_unsigned()));
    allowed.either(libc::SYS_prctl, 0, names)?;
    read_limits(&mut allowed)?;
    match whom {
        Confined::Decoder => {
            let read = [F_GETFD, F_GETFL].map(|command| u64::from(command.cast_unsigned()));
            allowed.either(libc::SYS_fcntl, 1, read)?;
        }
        Confined::Program { port, .. } => {
            program(&mut allowed)?;
            open_to_read(&mut allowed)?;
            allowed.either(libc::SYS_kill, 0, [process])?;
            if port.is_some() {
                network(&mut allowed)?;
            }
        }
        Confined::Launcher { group, .. } => {
            program(&mut allowed)?;
            // What is started enters the group, and can enter no other.
            let group = u64::from(group.cast_unsigned());
            let enters = [(0, SeccompCmpOp::Eq, 0), (1, SeccompCmpOp::Eq, group)];
            allowed.when(libc::SYS_setpgid, &enters)?;
            // What may be written is for the domain to say: the output of some programs is a device that is opened.
            allowed.all(&[libc::SYS_openat, libc::SYS_pidfd_open]);
            allowed.all(legacy::OPEN.as_slice());
            allowed.all(legacy::VFORK.as_slice());
            let (has, starts) = bits(CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_VFORK);
            allowed.when(libc::SYS_clone, &[(0, has, starts)])?;
        }
    }
    let filter = SeccompFilter::new(
        allowed.0,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        SeccompAction::Allow,
        ARCH.try_into()?,
    )?;
    filter.try_into()
}

/// Limits of this process may be read, not set, and those of others neither.
fn read_limits(allowed: &mut Allowed) -> Checked<()> {
    let null = |at| SeccompCondition::new(at, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0);
    let rule = SeccompRule::new(vec![null(0)?, null(2)?])?;
    allowed.0.insert(libc::SYS_prlimit64, vec![rule]);
    Ok(())
}

fn program(allowed: &mut Allowed) -> Checked<()> {
    allowed.all(PROGRAM);
    allowed.all(legacy::PROGRAM);
    let commands = FILE_COMMANDS.map(|command| u64::from(command.cast_unsigned()));
    allowed.either(libc::SYS_fcntl, 1, commands)?;
    // The kernel looks at 32 bits of a command.
    let commands = DEVICE_COMMANDS.map(|command| u64::from(command as u32));
    allowed.either(libc::SYS_ioctl, 1, commands)
}

/// Files are opened to be read: neither made, cut nor written.
fn open_to_read(allowed: &mut Allowed) -> Checked<()> {
    // Its other bit is that of folders.
    let temporary = O_TMPFILE & !libc::O_DIRECTORY;
    let writing = O_ACCMODE | O_CREAT | O_TRUNC | temporary;
    let (has, none) = bits(writing, libc::O_RDONLY);
    allowed.when(libc::SYS_openat, &[(2, has.clone(), none)])?;
    match legacy::OPEN {
        Some(open) => allowed.when(open, &[(1, has, none)]),
        None => Ok(()),
    }
}

/// TCP over IPv4, as the domain allows it. Data that is sent with the handshake would pass the domain by, and so would MPTCP.
fn network(allowed: &mut Allowed) -> Checked<()> {
    allowed.all(NETWORK);
    let (family, inet) = bits(-1, AF_INET);
    let (kind, stream) = bits(0xf, SOCK_STREAM);
    for protocol in [0, IPPROTO_TCP] {
        let (is, protocol) = bits(-1, protocol);
        let socket = [
            (0, family.clone(), inet),
            (1, kind.clone(), stream),
            (2, is, protocol),
        ];
        allowed.when(libc::SYS_socket, &socket)?;
    }
    let (has, none) = bits(MSG_FASTOPEN, 0);
    allowed.when(libc::SYS_sendto, &[(3, has.clone(), none)])?;
    allowed.when(libc::SYS_sendmsg, &[(2, has, none)])
}

/// Puts the filter over this thread. Returns false where the kernel has no filters.
pub(super) fn apply(filter: &BpfProgram) -> io::Result<bool> {
    match apply_filter(filter) {
        Ok(()) => Ok(true),
        Err(Error::Seccomp(error))
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP)
            ) =>
        {
            Ok(false)
        }
        Err(Error::Seccomp(error) | Error::Prctl(error)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}
