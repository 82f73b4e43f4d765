//! A machine with addresses of its own beside the test's: two network namespaces with a cable between them.
//!
//! The test runs again in a child, in namespaces that end with it: so nothing of the machine's network is changed, and nothing is
//! left behind however the child ends.

use std::{
    env,
    fs::File,
    os::fd::AsFd as _,
    process::Command,
    thread::{self, JoinHandle},
};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::disk::not_tested;

/// Set in the child.
const INSIDE: &str = "COLLOQUY_TEST_IN_NAMESPACES";

/// With this set, tests that need namespaces pass without them, and say so.
const WITHOUT_NAMESPACES: &str = "COLLOQUY_TEST_WITHOUT_NAMESPACES";

/// Who may make them: the administrator, or anybody who is one in a namespace of users.
const MAKERS: [&[&str]; 2] = [
    &["--net", "--mount"],
    &["--user", "--map-root-user", "--net", "--mount"],
];

/// A place for the names of namespaces, and the loopback interface.
const PREPARE: &str = "mount -t tmpfs tmpfs /run && ip link set lo up";

/// The other machine. The test's is at the other end of its cable.
#[derive(Debug)]
pub struct OtherMachine(());

impl OtherMachine {
    /// Sets it up in the child. In the test itself, runs the test of this name in the child, which has to pass, and gives `None`; also where
    /// nobody may make namespaces and `COLLOQUY_TEST_WITHOUT_NAMESPACES` permits to go without.
    ///
    /// # Panics
    /// Where the child fails, or nobody may make namespaces and that is not permitted.
    pub fn set_up(test: &str, cable: &[&str]) -> Option<Self> {
        if env::var_os(INSIDE).is_some() {
            for words in [
                "netns add other",
                "link add here type veth peer name there netns other",
            ] {
                ip(words);
            }
            cable.iter().for_each(|words| ip(words));
            return Some(Self(()));
        }
        let may_make = |maker: &&&[&str]| {
            let made = unshare(maker).args(["sh", "-c", PREPARE]).output();
            made.is_ok_and(|made| made.status.success())
        };
        let Some(maker) = MAKERS.iter().find(may_make) else {
            let what = "calls between network namespaces, since nobody may make them";
            assert!(
                env::var_os(WITHOUT_NAMESPACES).is_some(),
                "not tested: {what}; {WITHOUT_NAMESPACES}=1 passes over it"
            );
            not_tested(what);
            return None;
        };
        let again = format!("{PREPARE} && exec \"$@\"");
        let status = unshare(maker)
            .args(["--kill-child", "--fork", "sh", "-c", &again, "sh"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(INSIDE, "1")
            .status();
        assert!(status.unwrap().success(), "{test} failed in its namespaces");
        None
    }

    /// Runs what blocks on a thread of that machine; threads and sockets that it makes are there, too.
    pub fn spawn<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        thread::spawn(move || {
            let network = File::open("/run/netns/other").unwrap();
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            run()
        })
    }
}

fn unshare(maker: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(maker);
    command
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {words}: {done:?}");
}
