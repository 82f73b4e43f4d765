//! Order, gaps, wrapping and restarts, packet by packet.

use bytes::Bytes;

use super::*;

fn packet(sequence: u16, timestamp: u32) -> RtpPacket {
    RtpPacket {
        sequence,
        timestamp,
        payload: Bytes::from_static(&[1]),
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Pushes the `index`-th packet of a stream at a time.
fn push(buffer: &mut JitterBuffer, at_ms: u64, index: u16) {
    let timestamp = u32::MAX
        .wrapping_sub(2000)
        .wrapping_add(u32::from(index) * 960);
    buffer.push(ms(at_ms), packet(65_530_u16.wrapping_add(index), timestamp));
}

/// The indexes that come out by a time, each with the number given up before it.
fn pop(buffer: &mut JitterBuffer, at_ms: u64) -> Vec<(u16, u32)> {
    let ready = std::iter::from_fn(|| buffer.pop(ms(at_ms)));
    ready
        .map(|ready| (ready.packet.sequence.wrapping_sub(65_530), ready.lost))
        .collect()
}

#[test]
fn packets_in_order_pass_at_once_also_over_the_wrap() {
    let mut buffer = JitterBuffer::default();
    for index in 0..20 {
        let at = u64::from(index) * 20;
        push(&mut buffer, at, index);
        assert_eq!(pop(&mut buffer, at), [(index, 0)]);
        assert_eq!(buffer.deadline(), None);
    }
    assert_eq!(buffer.delay(), DELAY_MIN);
}

#[test]
fn a_gap_is_waited_for_and_then_given_up() {
    let mut buffer = JitterBuffer::default();
    push(&mut buffer, 0, 0);
    push(&mut buffer, 60, 3);
    push(&mut buffer, 80, 4);
    assert_eq!(pop(&mut buffer, 80), [(0, 0)]);
    assert_eq!(
        buffer.deadline(),
        Some(ms(100)),
        "40 ms after the gap was noticed"
    );
    assert_eq!(pop(&mut buffer, 99), []);
    assert_eq!(pop(&mut buffer, 100), [(3, 2), (4, 0)]);
    push(&mut buffer, 110, 1);
    push(&mut buffer, 111, 3);
    push(&mut buffer, 112, 0);
    assert_eq!(pop(&mut buffer, 200), []);
    let counters = buffer.counters();
    assert_eq!(
        (
            counters.received,
            counters.lost,
            counters.late,
            counters.duplicate
        ),
        (6, 2, 1, 2)
    );
}

#[test]
fn a_filled_gap_is_no_loss() {
    let mut buffer = JitterBuffer::default();
    push(&mut buffer, 0, 0);
    push(&mut buffer, 40, 2);
    push(&mut buffer, 41, 2);
    assert_eq!(pop(&mut buffer, 41), [(0, 0)]);
    push(&mut buffer, 50, 1);
    assert_eq!(pop(&mut buffer, 50), [(1, 0), (2, 0)]);
    let counters = buffer.counters();
    assert_eq!((counters.lost, counters.duplicate), (0, 1));
}

#[test]
fn the_delay_follows_the_jitter_within_bounds() {
    for (spread, low, high) in [(0, 20, 20), (50, 40, 50), (500, 120, 120)] {
        let mut buffer = JitterBuffer::default();
        for index in 0..200_u16 {
            let late = u64::from(index * 37 % 11) * spread / 10;
            push(&mut buffer, u64::from(index) * 20 + late, index);
            pop(&mut buffer, 1_000_000);
        }
        let delay = buffer.delay();
        assert!(
            delay >= ms(low) && delay <= ms(high),
            "{delay:?} for a spread of {spread} ms"
        );
    }
}

#[test]
fn a_restart_takes_two_packets_and_loses_none() {
    let mut buffer = JitterBuffer::default();
    push(&mut buffer, 0, 0);
    assert_eq!(buffer.pop(ms(0)).map(|ready| ready.restarted), Some(true));
    buffer.push(ms(20), packet(20_000, 5));
    assert_eq!(
        buffer.pop(ms(500)),
        None,
        "one foreign packet proves nothing"
    );
    buffer.push(ms(40), packet(20_001, 965));
    let ready = buffer.pop(ms(40)).unwrap();
    assert_eq!((ready.packet.sequence, ready.restarted), (20_000, true));
    let ready = buffer.pop(ms(40)).unwrap();
    assert_eq!(
        (ready.packet.sequence, ready.restarted, ready.lost),
        (20_001, false, 0)
    );
    assert_eq!(buffer.counters().received, 3);
}

#[test]
fn a_restart_that_looks_late_by_its_sequence_is_found_by_its_time() {
    let mut buffer = JitterBuffer::default();
    for index in 0..50 {
        push(&mut buffer, 0, index);
    }
    pop(&mut buffer, 0);
    // Ten behind by sequence number, an hour ahead by time.
    for index in [40_u16, 41] {
        let timestamp = 48_000 * 3600 + u32::from(index) * 960;
        buffer.push(ms(1000), packet(65_530_u16.wrapping_add(index), timestamp));
    }
    assert_eq!(pop(&mut buffer, 1000), [(40, 0), (41, 0)]);
}

#[test]
fn memory_is_bounded() {
    let mut buffer = JitterBuffer::default();
    push(&mut buffer, 0, 0);
    pop(&mut buffer, 0);
    for index in 2..2000 {
        push(&mut buffer, 0, index);
        pop(&mut buffer, 0);
        assert!(buffer.held.len() <= MAX_HELD);
    }
    assert_eq!(buffer.counters().lost, 1);
}
