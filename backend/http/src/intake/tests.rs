use std::{sync::Arc, time::Duration};

use colloquy_base::clock::SystemClock;
use colloquy_config::Config;
use tokio_util::sync::CancellationToken;

use super::*;

const TEXT: u8 = 1;
const CONTINUATION: u8 = 0;
const PING: u8 = 9;
const MOST: usize = 32_000_000;

fn edge(memory: usize) -> Edge {
    let mut config = Config::default();
    config.limits.body_memory_bytes = memory;
    Edge::new(&config, Arc::new(SystemClock), CancellationToken::new())
}

fn socket(edge: &Edge) -> Intake {
    let intake = Intake::default();
    intake.took(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    intake.note_request();
    assert!(intake.open(edge, "p", MOST));
    intake
}

/// The header of a frame of so many bytes.
fn header(opcode: u8, is_last: bool, length: usize) -> Vec<u8> {
    let mut bytes = vec![opcode | if is_last { 0x80 } else { 0 }];
    match length {
        0..126 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        126..65_536 => {
            bytes.push(0x80 | 126);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        _ => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(*b"mask");
    bytes
}

fn frame(opcode: u8, is_last: bool, length: usize) -> Vec<u8> {
    [header(opcode, is_last, length), vec![b' '; length]].concat()
}

fn reserved(intake: &Intake) -> usize {
    match &*intake.lock() {
        State::Http(_) => 0,
        State::WebSocket(messages) => messages.reserved,
    }
}

#[test]
fn a_frame_is_reserved_before_any_of_it_arrives() {
    let edge = edge(128_000_000);
    // Half of the memory is one partner's: two frames of 31 MB, and no byte of a third.
    let sockets: Vec<_> = (0..3).map(|_| socket(&edge)).collect();
    let announced = header(TEXT, true, 31_000_000);
    for intake in &sockets[..2] {
        intake.took(&announced).unwrap();
        assert_eq!(reserved(intake), 31_000_000);
    }
    let refused = sockets[2].took(&announced).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::OutOfMemory);
    assert_eq!(reserved(&sockets[2]), 0);
    // The payload takes no more than was announced, and the header of the frame.
    sockets[0].took(&vec![b' '; 30_999_999]).unwrap();
    assert_eq!(reserved(&sockets[0]), 30_999_999 + announced.len());
    assert!(sockets[0].late_at().is_some());
    drop(sockets);
    assert!(edge.bodies.take("p", 64_000_000));
}

#[test]
fn a_message_holds_its_memory_until_its_share_is_dropped() {
    let edge = edge(10_000_000);
    let intake = socket(&edge);
    // The next message begins in the same read.
    let read = [
        frame(TEXT, true, 1_000),
        frame(PING, true, 5),
        header(TEXT, true, 4_000_000),
    ]
    .concat();
    intake.took(&read).unwrap();
    let first = intake.take_message().unwrap();
    assert_eq!(reserved(&intake), 4_000_000);
    assert!(!edge.bodies.take("p", 1_000_000));
    drop(intake);
    assert!(edge.bodies.take("p", 4_990_000));
    assert!(!edge.bodies.take("p", 9_500));
    drop(first);
    assert!(edge.bodies.take("p", 9_500));
}

#[test]
fn fragments_count_with_the_string_that_collects_them() {
    let edge = edge(100_000_000);
    let intake = socket(&edge);
    let mut collected = String::new();
    for (nth, length) in [70_000, 1, 90_000, 300_000, 10, 65_536]
        .into_iter()
        .enumerate()
    {
        let opcode = if nth == 0 { TEXT } else { CONTINUATION };
        intake.took(&frame(opcode, false, length)).unwrap();
        let before = collected.capacity();
        collected.push_str(&" ".repeat(length));
        let copied = if collected.capacity() > before {
            before
        } else {
            0
        };
        assert!(reserved(&intake) >= collected.capacity() + copied + length);
        intake.took(&frame(PING, true, 100)).unwrap();
        assert!(intake.late_at().is_some());
    }
    intake.took(&frame(CONTINUATION, true, 0)).unwrap();
    assert_eq!(intake.late_at(), None);
    assert!(intake.take_message().is_some());
    assert_eq!(reserved(&intake), 0);
}

#[test]
fn frames_are_found_however_they_are_cut() {
    let bytes = [
        frame(PING, true, 0),
        frame(TEXT, false, 200),
        frame(PING, true, 125),
        frame(CONTINUATION, true, 70_000),
        frame(TEXT, true, 0),
        header(TEXT, true, 500_000),
    ]
    .concat();
    for step in [1, 2, 3, 7, 1_000, bytes.len()] {
        let edge = edge(100_000_000);
        let intake = socket(&edge);
        for piece in bytes.chunks(step) {
            intake.took(piece).unwrap();
        }
        let messages = [(); 2].map(|()| intake.take_message());
        assert!(messages.iter().all(Option::is_some));
        assert_eq!(reserved(&intake), 500_000);
    }
}

#[test]
fn a_frame_that_the_socket_refuses_takes_nothing() {
    let edge = edge(100_000_000);
    for length in [MOST + 1, usize::MAX] {
        let intake = socket(&edge);
        let announced = header(TEXT, true, length);
        intake.took(&announced).unwrap();
        assert_eq!(reserved(&intake), announced.len());
    }
}

#[test]
fn bytes_behind_the_head_are_noticed() {
    let edge = edge(100_000_000);
    let opens = |reads: &[&str], behind: &[&str]| {
        let intake = Intake::default();
        for read in reads {
            intake.took(read.as_bytes()).unwrap();
        }
        intake.note_request();
        for read in behind {
            intake.took(read.as_bytes()).unwrap();
        }
        intake.open(&edge, "p", MOST)
    };
    let head = "GET / HTTP/1.1\r\n\r\n";
    assert!(opens(&[head], &[]));
    assert!(opens(&["GET / HTTP/1.1\n\n"], &[]));
    assert!(opens(&["GET / HTTP/1.1\r\n\r", "\n"], &[]));
    assert!(opens(&["POST / HTTP/1.1\r\n\r\n\n\n", head], &[]));
    assert!(!opens(&["GET / HTTP/1.1\r\n\r\nframe"], &[]));
    // A frame may end as a head does.
    assert!(!opens(&["GET / HTTP/1.1\r\n\r\nframe\n\n"], &[]));
    assert!(!opens(&["GET / HTTP/1.1\r\n\r", "\nframe\n\n"], &[]));
    assert!(!opens(&[head], &["frame\n\n"]));
}

#[test]
fn empty_messages_that_nobody_takes_do_not_pile_up() {
    let edge = edge(100_000_000);
    let intake = socket(&edge);
    let refused = intake
        .took(&frame(TEXT, true, 0).repeat(5_000))
        .unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_message_has_the_times_of_a_body() {
    let edge = edge(100_000_000);
    let intake = socket(&edge);
    assert_eq!(intake.late_at(), None);
    let begun = runtime_now();
    let took = |bytes: &[u8], seconds: u64| {
        let now = begun + Duration::from_secs(seconds);
        match &mut *intake.lock() {
            State::Http(_) => panic!("the connection is a WebSocket"),
            State::WebSocket(messages) => messages.took(bytes, now).unwrap(),
        }
    };
    took(&header(TEXT, true, 10_000), 0);
    assert_eq!(intake.late_at(), Some(begun + edge.body_pause));
    for nth in 1..100 {
        took(b" ", nth * 20);
    }
    assert_eq!(intake.late_at(), Some(begun + edge.body_time));
}
