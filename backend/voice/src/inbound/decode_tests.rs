//! What fills a hole, and that recovered sound is better than made-up sound.

use bytes::Bytes;
use opus::{Application, Bitrate, Encoder};

use super::*;
use crate::interface::RtpPacket;

#[derive(Default)]
struct Collected {
    samples: Vec<i16>,
    /// Where silence was handed on, and how much.
    silences: Vec<(usize, usize)>,
}

impl Sink for Collected {
    fn audio(&mut self, samples: &[i16]) {
        self.samples.extend_from_slice(samples);
    }

    fn silence(&mut self, samples: usize) {
        self.silences.push((self.samples.len(), samples));
        self.samples.extend(std::iter::repeat_n(0, samples));
    }
}

/// The words of the test recording as packets, with or without redundancy.
fn packets(fec: bool) -> Vec<Ready> {
    let bytes = include_bytes!("../../tests/data/goforward.raw");
    let audio: Vec<i16> = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|pair| i16::from_le_bytes(*pair))
        .collect();
    let mut encoder = Encoder::new(16_000, Channels::Mono, Application::Voip).unwrap();
    encoder.set_bitrate(Bitrate::Bits(28_000)).unwrap();
    encoder.set_inband_fec(fec).unwrap();
    encoder.set_packet_loss_perc(20).unwrap();
    let encode = |(index, frame): (usize, &[i16; 320])| Ready {
        packet: RtpPacket {
            sequence: index as u16,
            timestamp: (u32::MAX - 30_000).wrapping_add(index as u32 * 960),
            payload: Bytes::from(encoder.encode_vec(frame, 1275).unwrap()),
        },
        lost: 0,
        restarted: false,
    };
    audio[8000..36_000]
        .as_chunks::<320>()
        .0
        .iter()
        .enumerate()
        .map(encode)
        .collect()
}

fn decode(packets: &[Ready]) -> (Decoder, Collected) {
    let mut decoder = Decoder::new().unwrap();
    let mut collected = Collected::default();
    for ready in packets {
        decoder.decode(ready, &mut collected);
    }
    (decoder, collected)
}

/// The packets without some of them, as the jitter buffer tells it.
fn without(mut packets: Vec<Ready>, gone: std::ops::Range<usize>) -> Vec<Ready> {
    packets[gone.end].lost = gone.len() as u32;
    packets.drain(gone);
    packets
}

fn difference(left: &[i16], right: &[i16]) -> f64 {
    assert_eq!(left.len(), right.len());
    let squares = left
        .iter()
        .zip(right)
        .map(|(l, r)| (f64::from(*l) - f64::from(*r)).powi(2));
    (squares.sum::<f64>() / left.len() as f64).sqrt()
}

#[test]
fn every_lost_frame_is_filled_and_counted() {
    let (_, whole) = decode(&packets(true));
    assert!(whole.silences.is_empty());
    for (lost, concealed, recovered, silent) in
        [(1, 0, 1, 0), (2, 1, 1, 0), (5, 4, 1, 0), (9, 4, 1, 4)]
    {
        let (decoder, holed) = decode(&without(packets(true), 20..20 + lost));
        assert_eq!(
            holed.samples.len(),
            whole.samples.len(),
            "time does not shrink with {lost} lost"
        );
        assert_eq!(
            (decoder.concealed, decoder.recovered),
            (concealed, recovered),
            "{lost} lost"
        );
        let silence: usize = holed.silences.iter().map(|(_, samples)| samples).sum();
        assert_eq!(silence, silent * FRAME_SAMPLES, "{lost} lost");
    }
}

#[test]
fn without_redundancy_a_lost_frame_is_concealed() {
    let (decoder, _) = decode(&without(packets(false), 20..21));
    assert_eq!((decoder.concealed, decoder.recovered), (1, 0));
}

#[test]
fn a_recovered_frame_is_nearer_to_the_truth_than_a_concealed_one() {
    let (_, whole) = decode(&packets(true));
    let mut better = 0;
    let mut compared = 0;
    for lost in 10..60 {
        let range = lost * 320..(lost + 1) * 320;
        let (decoder, recovered) = decode(&without(packets(true), lost..lost + 1));
        if decoder.recovered == 0 {
            continue;
        }
        // The same hole, but the next packet is not asked for its redundancy.
        let mut blind = Decoder::new().unwrap();
        let mut concealed = Collected::default();
        for ready in &packets(true)[..lost] {
            blind.decode(ready, &mut concealed);
        }
        blind.decode_frame(&[], FRAME_SAMPLES, false, &mut concealed);
        let truth = &whole.samples[range.clone()];
        compared += 1;
        better += usize::from(
            difference(&recovered.samples[range.clone()], truth)
                < difference(&concealed.samples[range], truth),
        );
    }
    assert!(compared > 25, "{compared}");
    assert!(better * 10 > compared * 8, "{better} of {compared}");
}

#[test]
fn time_in_which_nothing_was_sent_is_silence() {
    let mut gap = packets(true);
    // No packet is missing by number; 300 ms are missing by time.
    for ready in &mut gap[20..] {
        ready.packet.timestamp = ready.packet.timestamp.wrapping_add(48 * 300);
    }
    let (decoder, heard) = decode(&gap);
    assert_eq!(heard.silences, [(20 * FRAME_SAMPLES, 4800)]);
    assert_eq!((decoder.concealed, decoder.recovered), (0, 0));
}

#[test]
fn dtx_packets_are_silence_of_their_length() {
    for (payload, samples) in [
        (&[][..], 320),
        (&[0x08][..], 320),
        (&[0x08, 0x00][..], 320),
        (&[0x18][..], 960),
    ] {
        let mut dtx = packets(true);
        dtx.truncate(10);
        dtx[9].packet.payload = Bytes::copy_from_slice(payload);
        let (_, heard) = decode(&dtx);
        assert_eq!(
            heard.silences,
            [(9 * FRAME_SAMPLES, samples)],
            "{payload:?}"
        );
    }
}

#[test]
fn a_jump_of_hours_does_not_fill_the_memory() {
    let mut jump = packets(true);
    jump.truncate(11);
    jump[10].packet.timestamp = jump[9].packet.timestamp.wrapping_add(48_000 * 3600);
    let (_, heard) = decode(&jump);
    assert_eq!(heard.silences, [(10 * FRAME_SAMPLES, MAX_SILENCE_SAMPLES)]);
}

#[test]
fn what_came_late_after_the_clock_gave_silence_is_only_decoded() {
    let packets = packets(true);
    let mut decoder = Decoder::new().unwrap();
    let mut heard = Collected::default();
    for ready in &packets[..10] {
        decoder.decode(ready, &mut heard);
    }
    decoder.skip(1000);
    decoder.decode(&packets[10], &mut heard);
    assert!(heard.silences.is_empty());
    assert_eq!(heard.samples.len(), 11 * FRAME_SAMPLES);
}

#[test]
fn nothing_is_made_up_after_silence() {
    let packets = without(packets(false), 12..15);
    let mut decoder = Decoder::new().unwrap();
    let mut heard = Collected::default();
    for ready in &packets[..12] {
        decoder.decode(ready, &mut heard);
    }
    decoder.skip(FRAME_SAMPLES);
    decoder.decode(&packets[12], &mut heard);
    assert_eq!(decoder.concealed, 0);
    assert_eq!(heard.silences, [(12 * FRAME_SAMPLES, 2 * FRAME_SAMPLES)]);
}

#[test]
fn garbage_is_silence() {
    let mut broken = packets(true);
    broken.truncate(12);
    // Code 3 with a frame count of zero (RFC 6716, 3.2.5).
    broken[10].packet.payload = Bytes::from_static(&[0x0b, 0x00, 1, 2, 3]);
    let (_, heard) = decode(&broken);
    assert_eq!(heard.silences, [(10 * FRAME_SAMPLES, FRAME_SAMPLES)]);
}

#[test]
fn longer_frames_and_stereo_are_understood() {
    let audio = vec![0_i16; 960 * 2];
    let mut encoder = Encoder::new(16_000, Channels::Stereo, Application::Voip).unwrap();
    let payload = Bytes::from(encoder.encode_vec(&audio, 1275).unwrap());
    let packet = RtpPacket {
        sequence: 0,
        timestamp: 0,
        payload,
    };
    let (decoder, heard) = decode(&[Ready {
        packet,
        lost: 0,
        restarted: true,
    }]);
    assert_eq!(heard.samples.len(), 960);
    assert_eq!(decoder.expected, Some(2880));
}
