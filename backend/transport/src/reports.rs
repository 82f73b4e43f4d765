//! The client's reports of the character's voice, in RTCP (RFC 3550, 6.4).

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use rtc::{
    interceptor::{Attribute, Interceptor, Packet, StreamInfo, TaggedPacket},
    rtcp::{
        self, receiver_report::ReceiverReport, reception_report::ReceptionReport,
        sender_report::SenderReport,
    },
    sansio::Protocol,
    shared::{error::Error, time::SystemInstant},
};

/// The client's last report of the character's voice. No value of it is verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reception {
    /// The time that a packet takes there and back; `None` until it was measured.
    pub round_trip: Option<Duration>,
    /// The highest sequence number that came, extended by the number of its cycles.
    pub last_sequence: u32,
    /// Packets that were lost since the beginning.
    pub lost: u32,
}

impl Reception {
    /// Takes a report that came at this time. One that measures no round trip leaves that of `earlier`.
    pub(crate) fn of(report: &ReceptionReport, earlier: Option<Self>, now: Instant) -> Self {
        let ntp = SystemInstant::now(now).ntp(now);
        let earlier = earlier.and_then(|earlier| earlier.round_trip);
        Self {
            round_trip: round_trip(ntp, report.last_sender_report, report.delay).or(earlier),
            last_sequence: report.last_sequence_number,
            lost: lost(report.total_lost),
        }
    }
}

/// Returns the report of the stream `ssrc`, if packets have one. A client that speaks reports in its sender reports.
pub(crate) fn report_of(packets: &[Box<dyn rtcp::Packet>], ssrc: u32) -> Option<&ReceptionReport> {
    let reports = packets.iter().filter_map(|packet| {
        let packet = packet.as_any();
        let of_sender = packet.downcast_ref::<SenderReport>().map(|it| &it.reports);
        of_sender.or_else(|| Some(&packet.downcast_ref::<ReceiverReport>()?.reports))
    });
    reports.flatten().find(|report| report.ssrc == ssrc)
}

/// The most that a round trip may be below zero, in units of 1/65536 s: the clocks of both sides are rounded.
const ROUNDING: i32 = 656;

/// A round trip that takes longer was not measured, but made up.
const MAX_ROUND_TRIP: Duration = Duration::from_secs(10);

/// Returns the time from a sender report until its report came back, at this NTP time, without the delay at the client; all but the NTP time are in
/// units of 1/65536 s. `None` for no sender report, and for a report that makes no sense.
fn round_trip(now_ntp: u64, last_sender_report: u32, delay: u32) -> Option<Duration> {
    if last_sender_report == 0 {
        return None;
    }
    let now = (now_ntp >> 16) as u32;
    let took = now
        .wrapping_sub(last_sender_report)
        .wrapping_sub(delay)
        .cast_signed();
    if took < -ROUNDING {
        return None;
    }
    let took = u64::from(took.max(0).unsigned_abs());
    let took = Duration::from_micros(took * 1_000_000 / 65_536);
    (took <= MAX_ROUND_TRIP).then_some(took)
}

/// Returns a number of lost packets, which has 24 bits with a sign: with copies, more packets may have come than were sent.
fn lost(total_lost: u32) -> u32 {
    let signed = (total_lost << 8).cast_signed() >> 8;
    signed.max(0).unsigned_abs()
}

/// Passes on to [`Peer`](crate::peer::Peer) what comes in RTCP, which the stack keeps to itself otherwise.
#[derive(Default)]
pub(crate) struct Delivered {
    incoming: VecDeque<TaggedPacket>,
    outgoing: VecDeque<TaggedPacket>,
}

impl Protocol<TaggedPacket, TaggedPacket, ()> for Delivered {
    type Rout = TaggedPacket;
    type Wout = TaggedPacket;
    type Eout = ();
    type Error = Error;
    type Time = Instant;

    fn handle_read(&mut self, mut packet: TaggedPacket) -> Result<(), Error> {
        if matches!(packet.message.packet, Packet::Rtcp(_)) {
            packet.message.add(Attribute::DeliverToApplication);
        }
        self.incoming.push_back(packet);
        Ok(())
    }

    fn poll_read(&mut self) -> Option<TaggedPacket> {
        self.incoming.pop_front()
    }

    fn handle_write(&mut self, packet: TaggedPacket) -> Result<(), Error> {
        self.outgoing.push_back(packet);
        Ok(())
    }

    fn poll_write(&mut self) -> Option<TaggedPacket> {
        self.outgoing.pop_front()
    }
}

impl Interceptor for Delivered {
    fn bind_local_stream(&mut self, _: &StreamInfo) {}
    fn unbind_local_stream(&mut self, _: &StreamInfo) {}
    fn bind_remote_stream(&mut self, _: &StreamInfo) {}
    fn unbind_remote_stream(&mut self, _: &StreamInfo) {}
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::*;

    /// Reports of the client, in a sender report or a receiver report.
    fn reports(is_speaking: bool, reports: Vec<ReceptionReport>) -> Box<dyn rtcp::Packet> {
        match is_speaking {
            true => Box::new(SenderReport {
                reports,
                ..SenderReport::default()
            }),
            false => Box::new(ReceiverReport {
                reports,
                ..ReceiverReport::default()
            }),
        }
    }

    #[test]
    fn what_the_client_reports_of_the_voice_is_known() {
        let now = SystemClock.instant();
        for is_speaking in [false, true] {
            // Sent 300 ms ago, and 200 ms of that are the client's.
            let ntp = (SystemInstant::now(now).ntp(now) >> 16) as u32;
            let own = ReceptionReport {
                ssrc: 7,
                total_lost: 5,
                last_sequence_number: 1_000,
                last_sender_report: ntp - 65_536 * 3 / 10,
                delay: 65_536 / 5,
                ..Default::default()
            };
            let foreign = ReceptionReport {
                ssrc: 8,
                total_lost: 99,
                ..Default::default()
            };
            let taken = |taken: Vec<ReceptionReport>, earlier| {
                let packets = [reports(is_speaking, taken)];
                report_of(&packets, 7).map(|report| Reception::of(report, earlier, now))
            };
            let reception = taken(vec![foreign.clone(), own.clone()], None).unwrap();
            let took = reception.round_trip.unwrap().as_millis();
            assert!((99..150).contains(&took), "{took}");
            assert_eq!((reception.last_sequence, reception.lost), (1_000, 5));
            // A report that measures no round trip leaves the one that is known.
            let unmeasured = ReceptionReport {
                last_sender_report: 0,
                total_lost: 0xFF_FFFF,
                ..own
            };
            let after = taken(vec![unmeasured], Some(reception)).unwrap();
            assert_eq!((after.round_trip, after.lost), (reception.round_trip, 0));
            assert_eq!(taken(vec![foreign], Some(reception)), None);
        }
    }

    #[test]
    fn a_round_trip_that_makes_no_sense_is_none() {
        let now = 1_000 << 48;
        let sent = ((now >> 16) as u32).wrapping_sub(65_536);
        assert_eq!(round_trip(now, sent, 0), Some(Duration::from_secs(1)));
        assert_eq!(round_trip(now, sent, 65_536), Some(Duration::ZERO));
        // A little less than nothing is rounding.
        assert_eq!(round_trip(now, sent, 65_600), Some(Duration::ZERO));
        for (sent, delay) in [
            (0, 0),
            (sent, 80_000),
            (sent, u32::MAX / 2),
            (sent.wrapping_sub(65_536 * 20), 0),
        ] {
            assert_eq!(round_trip(now, sent, delay), None, "{sent} {delay}");
        }
    }
}
