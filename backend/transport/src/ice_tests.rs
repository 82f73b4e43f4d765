use colloquy_base::clock::{Clock as _, SystemClock};
use rtc::crypto;

use super::*;

fn credentials(name: &str) -> Credentials {
    Credentials {
        fragment: name.to_owned(),
        password: format!("{name}-password-of-22-characters"),
    }
}

fn agent() -> Agent {
    let mut agent = Agent::new(crypto::default_provider().unwrap());
    agent.set_credentials(credentials("server"), credentials("client"));
    agent
}

fn from(port: u16) -> Addresses {
    Addresses {
        local: SocketAddr::from(([10, 0, 0, 1], 3478)),
        remote: SocketAddr::from(([10, 0, 0, 2], port)),
    }
}

/// A check as a client sends it.
fn check(name: &str, password: &str, role: Box<dyn Setter>, nominates: bool) -> Vec<u8> {
    let mut setters: Vec<Box<dyn Setter>> = vec![
        Box::new(BINDING_REQUEST),
        Box::new(TransactionId::new()),
        Box::new(Username::new(ATTR_USERNAME, name.to_owned())),
        role,
        Box::new(PriorityAttr(PRIORITY)),
    ];
    if nominates {
        setters.push(Box::new(UseCandidateAttr));
    }
    build(&setters, password, &crypto::default_provider().unwrap()).unwrap()
}

fn request(nominates: bool) -> Vec<u8> {
    let password = credentials("server").password;
    check(
        "server:client",
        &password,
        Box::new(AttrControlling(7)),
        nominates,
    )
}

/// What the agent sends: the kind of each message.
fn sent(agent: &mut Agent) -> Vec<(Addresses, MessageType, Vec<u8>)> {
    std::iter::from_fn(|| agent.poll())
        .map(|(to, bytes)| (to, decode(&bytes).unwrap().typ, bytes))
        .collect()
}

/// Lets a client check from an address and answer the check that comes back.
fn verify(agent: &mut Agent, addresses: Addresses, nominates: bool, now: Instant) {
    agent.receive(&request(nominates), addresses, now);
    for (to, kind, bytes) in sent(agent) {
        if kind == BINDING_REQUEST {
            let answer = agent.answer_to(&bytes, addresses).unwrap();
            assert_eq!(agent.receive(&answer, to, now), Stun::Authentic);
        }
    }
}

#[test]
fn a_client_that_nominates_with_its_first_check_has_its_path_at_once() {
    let (mut agent, now) = (agent(), SystemClock.instant());
    assert_eq!(agent.destination(10, now), None);
    assert_eq!(agent.receive(&request(true), from(1), now), Stun::Authentic);
    let out = sent(&mut agent);
    let kinds: Vec<MessageType> = out.iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, [BINDING_SUCCESS, BINDING_REQUEST]);
    assert!(out.iter().all(|(to, ..)| *to == from(1)));
    assert_eq!(agent.destination(10, now), Some(from(1)));
    assert!(agent.is_connected(now));
    // Once the address has answered, it is not checked again.
    let answer = agent.answer_to(&out[1].2, from(1)).unwrap();
    assert_eq!(agent.receive(&answer, from(1), now), Stun::Authentic);
    agent.receive(&request(true), from(1), now);
    let kinds: Vec<MessageType> = sent(&mut agent).iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, [BINDING_SUCCESS]);
}

#[test]
fn who_does_not_know_the_password_gets_nothing() {
    let (mut agent, now) = (agent(), SystemClock.instant());
    let right = credentials("server").password;
    let role = || Box::new(AttrControlling(7));
    let whole = request(true);
    let mut changed = whole.clone();
    changed[40] ^= 1;
    let mut trailing = whole.clone();
    trailing.push(0);
    let mut answers = vec![
        check(
            "server:client",
            &credentials("client").password,
            role(),
            true,
        ),
        check("server:other", &right, role(), true),
        check("other:client", &right, role(), true),
        check("server:client", "", role(), true),
        agent.answer_to(&whole, from(1)).unwrap(),
        changed,
        trailing,
    ];
    answers.extend((0..whole.len()).map(|length| whole[..length].to_vec()));
    for bytes in answers {
        assert_eq!(agent.receive(&bytes, from(1), now), Stun::Refused);
    }
    assert!(sent(&mut agent).is_empty());
    assert_eq!(agent.destination(10, now), None);
    assert!(!agent.admits(from(1), 10));
    // Before an answer was made, there is no password at all.
    let mut unset = Agent::new(crypto::default_provider().unwrap());
    let empty = check(":", "", role(), true);
    assert_eq!(unset.receive(&empty, from(1), now), Stun::Refused);
}

#[test]
fn addresses_that_do_not_answer_get_three_times_what_came_from_them() {
    let (mut agent, now) = (agent(), SystemClock.instant());
    let (mut received, mut out) = (0, 0);
    for port in 1..=100 {
        for _ in 0..10 {
            let check = request(true);
            received += check.len();
            agent.receive(&check, from(port), now);
            // Media would go there, too.
            while agent.destination(200, now).is_some() {
                out += 200;
            }
            out += sent(&mut agent)
                .iter()
                .map(|(.., bytes)| bytes.len())
                .sum::<usize>();
        }
    }
    assert!(out <= UNVERIFIED_FACTOR * received, "{out} of {received}");
    assert!(agent.paths.len() <= MAX_PATHS);
    assert!(agent.next_tick(now).is_some_and(|at| at > now));
}

#[test]
fn the_path_follows_the_client_and_nobody_else() {
    let (mut agent, now) = (agent(), SystemClock.instant());
    verify(&mut agent, from(1), true, now);
    assert_eq!(agent.destination(10, now), Some(from(1)));
    // Nominated from an address that does not answer: whoever is there did not ask for it.
    agent.receive(&request(true), from(2), now);
    assert_eq!(sent(&mut agent).len(), 2);
    assert_eq!(agent.destination(10, now), Some(from(1)));
    // Answered, and not nominated.
    verify(&mut agent, from(3), false, now);
    assert_eq!(agent.destination(10, now), Some(from(1)));
    verify(&mut agent, from(3), true, now);
    assert_eq!(agent.destination(10, now), Some(from(3)));
    // The path in use stays known, however many others come.
    for port in 10..40 {
        verify(&mut agent, from(port), false, now);
    }
    assert_eq!(agent.destination(10, now), Some(from(3)));
    assert!(agent.admits(from(3), 10));
}

#[test]
fn a_silent_client_is_asked_until_consent_runs_out() {
    let (mut agent, begun) = (agent(), SystemClock.instant());
    verify(&mut agent, from(1), true, begun);
    let mut now = begun;
    let mut asked = Vec::new();
    while let Some(at) = agent.next_tick(now) {
        now = at;
        agent.tick(now);
        let connected = now < begun + DISCONNECTED;
        assert_eq!(agent.is_connected(now), connected);
        for (_, kind, bytes) in sent(&mut agent) {
            assert_eq!(kind, BINDING_REQUEST);
            asked.push(bytes);
        }
    }
    assert_eq!(now, begun + CONSENT);
    assert_eq!(asked.len(), 28);
    assert_eq!(agent.destination(10, now), None);
    let answer = agent.answer_to(asked.last().unwrap(), from(1)).unwrap();
    assert_eq!(agent.receive(&answer, from(1), now), Stun::Authentic);
    assert!(agent.is_connected(now));
    assert_eq!(agent.destination(10, now), Some(from(1)));
    // A client that is heard is not asked.
    for _ in 0..50 {
        now += Duration::from_millis(100);
        agent.heard(now);
        agent.tick(now);
    }
    assert!(sent(&mut agent).is_empty());
}

#[test]
fn a_client_that_takes_itself_for_the_controlled_agent_is_told() {
    let (mut agent, now) = (agent(), SystemClock.instant());
    let password = credentials("server").password;
    let check = check(
        "server:client",
        &password,
        Box::new(AttrControlled(7)),
        false,
    );
    assert_eq!(agent.receive(&check, from(1), now), Stun::Authentic);
    let kinds: Vec<MessageType> = sent(&mut agent).iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(kinds, [BINDING_ERROR]);
    assert_eq!(agent.destination(10, now), None);
}

#[test]
fn a_restart_takes_new_passwords_and_keeps_the_path_until_the_next() {
    let (mut agent, now) = (agent(), SystemClock.instant());
    verify(&mut agent, from(1), true, now);
    let earlier = request(true);
    agent.set_credentials(credentials("again"), credentials("client2"));
    assert_eq!(agent.receive(&earlier, from(2), now), Stun::Refused);
    assert_eq!(agent.destination(10, now), Some(from(1)));
    let password = credentials("again").password;
    let next = check(
        "again:client2",
        &password,
        Box::new(AttrControlling(7)),
        true,
    );
    assert_eq!(agent.receive(&next, from(2), now), Stun::Authentic);
    let (_, _, back) = sent(&mut agent).pop().unwrap();
    let answer = agent.answer_to(&back, from(2)).unwrap();
    assert_eq!(agent.receive(&answer, from(2), now), Stun::Authentic);
    assert_eq!(agent.destination(10, now), Some(from(2)));
}

#[test]
fn fuzzed_garbage_is_refused() {
    let now = SystemClock.instant();
    let seeds = [request(true), request(false)];
    colloquy_fuzz::fuzz(&seeds, |bytes| {
        let mut agent = agent();
        let stun = agent.receive(bytes, from(1), now);
        let decoded = decode(bytes);
        let attributes = decoded.map(|message| message.attributes.0.len().min(8));
        format!("{stun:?} {attributes:?} {}", sent(&mut agent).len())
    });
}
