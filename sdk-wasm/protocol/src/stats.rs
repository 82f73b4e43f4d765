//! The quality of a call, from the entries of the browser's WebRTC statistics (W3C webrtc-stats).

use serde::Serialize;

use crate::Fields;

/// From these on a call is no longer good, or poor: round trip in milliseconds, loss and concealment as fractions.
const FAIR: (f64, f64) = (250.0, 0.02);
const POOR: (f64, f64) = (500.0, 0.08);

/// Samples of a packet, and those that a browser makes up after the last packet before a pause, until it knows that it is one: the
/// other side sends nothing while nobody speaks there.
const PACKET_SAMPLES: f64 = 960.0;
const PAUSE_SAMPLES: f64 = 9_600.0;

/// When the last packet of media came.
const LAST_PACKET: &str = "lastPacketReceivedTimestamp";

/// How long nothing may come from the other side, in milliseconds: a backend reports every second what it received.
const SILENCE_MS: f64 = 3_000.0;

/// The quality of a call since the last report, as `onStats` is given it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallStats {
    /// `good`, `fair` or `poor`.
    pub quality: &'static str,
    /// The round trip in milliseconds, once it was measured.
    pub round_trip_ms: Option<f64>,
    /// The variation of the arrival times in milliseconds, once it was measured.
    pub jitter_ms: Option<f64>,
    /// The fraction of the sent packets that were lost, once the other side said so.
    pub loss_sent: Option<f64>,
    /// The fraction of the other side's packets that were lost.
    pub loss_received: f64,
    /// The fraction of the samples played that the browser made up.
    pub concealed: f64,
    /// Bits a second; `None` in the first report, which has nothing to compare with.
    pub bitrate_sent: Option<f64>,
    /// Bits a second; `None` in the first report.
    pub bitrate_received: Option<f64>,
    /// The type of the local ICE candidate in use, such as `host` or `relay`.
    pub candidate_type: Option<String>,
    /// The transport protocol of that candidate; of a relayed one, the protocol to the TURN server.
    pub protocol: Option<String>,
}

/// What the browser has counted since the start of the connection.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    at_ms: f64,
    bytes_sent: f64,
    bytes_received: f64,
    packets_received: f64,
    packets_lost: f64,
    samples: f64,
    concealed: f64,
    /// STUN messages and, where the browser does not tell when the last one came, packets of media.
    messages_received: f64,
}

/// Compares one report with the last.
#[derive(Debug, Default)]
pub struct StatsMeter {
    last: Counts,
    /// When something of the other side's last came, as far as the reports tell.
    heard_at_ms: Option<f64>,
}

impl StatsMeter {
    /// Takes in the entries of a report.
    pub fn read<F: Fields>(&mut self, entries: &[F]) -> CallStats {
        let inbound = of_type(entries, "inbound-rtp");
        let heard = of_type(entries, "remote-inbound-rtp");
        let pair = selected_pair(entries);
        let now = counts(inbound, of_type(entries, "outbound-rtp"), pair);
        let last = std::mem::replace(&mut self.last, now);
        let seconds = (now.at_ms - last.at_ms) / 1000.0;
        let rate = |now: f64, before: f64| {
            let known = last.at_ms > 0.0 && seconds > 0.0;
            known.then(|| ((now - before) * 8.0 / seconds).max(0.0))
        };
        // ICE measures more often than RTCP.
        let round_trip = pair
            .and_then(|pair| pair.number("currentRoundTripTime"))
            .or_else(|| heard?.number("roundTripTime"));
        let lost = (now.packets_lost - last.packets_lost).max(0.0);
        let received = now.packets_received - last.packets_received;
        let played = now.samples - last.samples;
        let paused = played - (received + lost) * PACKET_SAMPLES >= PAUSE_SAMPLES;
        let of_a_pause = if paused { PAUSE_SAMPLES } else { 0.0 };
        let concealed = now.concealed - last.concealed - of_a_pause;
        let (candidate_type, protocol) = path(entries);
        let mut stats = CallStats {
            quality: "good",
            round_trip_ms: milliseconds(round_trip),
            jitter_ms: milliseconds(inbound.and_then(|inbound| inbound.number("jitter"))),
            loss_sent: heard.and_then(|heard| heard.number("fractionLost")),
            loss_received: part(lost, lost + received),
            concealed: part(concealed, played),
            bitrate_sent: rate(now.bytes_sent, last.bytes_sent),
            bitrate_received: rate(now.bytes_received, last.bytes_received),
            candidate_type,
            protocol,
        };
        if stats.reaches(POOR) || self.is_silent(entries, &last, &now) {
            stats.quality = "poor";
        } else if stats.reaches(FAIR) {
            stats.quality = "fair";
        }
        stats
    }

    /// Returns true if the other side was sent something and has sent nothing for too long: neither RTCP nor STUN nor media.
    fn is_silent<F: Fields>(&mut self, entries: &[F], last: &Counts, now: &Counts) -> bool {
        let at = |kind, name| of_type(entries, kind)?.number(name);
        let told = [
            at("remote-inbound-rtp", "timestamp"),
            at("remote-outbound-rtp", "timestamp"),
            at("inbound-rtp", LAST_PACKET),
            (now.messages_received != last.messages_received).then_some(now.at_ms),
        ];
        for at_ms in told.into_iter().flatten() {
            if self.heard_at_ms.is_none_or(|heard| heard < at_ms) {
                self.heard_at_ms = Some(at_ms);
            }
        }
        now.bytes_sent > last.bytes_sent
            && self
                .heard_at_ms
                .is_some_and(|heard| now.at_ms - heard >= SILENCE_MS)
    }
}

impl CallStats {
    fn reaches(&self, (round_trip_ms, fraction): (f64, f64)) -> bool {
        self.round_trip_ms >= Some(round_trip_ms)
            || self.loss_sent >= Some(fraction)
            || self.loss_received >= fraction
            || self.concealed >= fraction
    }
}

/// How a connection runs: the type and the protocol of the local candidate; of a relayed one, the protocol to the TURN
/// server.
#[must_use]
pub fn path<F: Fields>(entries: &[F]) -> (Option<String>, Option<String>) {
    let candidate = selected_pair(entries)
        .and_then(|pair| pair.text("localCandidateId"))
        .and_then(|id| with_id(entries, &id));
    let text = |key| candidate.and_then(|candidate| candidate.text(key));
    let protocol = text("relayProtocol").or_else(|| text("protocol"));
    (text("candidateType"), protocol)
}

fn of_type<'a, F: Fields>(entries: &'a [F], name: &str) -> Option<&'a F> {
    let is_of_type = |entry: &&F| entry.text("type").as_deref() == Some(name);
    entries.iter().find(is_of_type)
}

fn with_id<'a, F: Fields>(entries: &'a [F], id: &str) -> Option<&'a F> {
    let has_id = |entry: &&F| entry.text("id").as_deref() == Some(id);
    entries.iter().find(has_id)
}

/// The pair of candidates that media flows over. The transport names it; older Firefox marks the pair instead.
fn selected_pair<F: Fields>(entries: &[F]) -> Option<&F> {
    of_type(entries, "transport")
        .and_then(|transport| transport.text("selectedCandidatePairId"))
        .and_then(|id| with_id(entries, &id))
        .or_else(|| {
            let is_selected = |entry: &&F| entry.flag("selected") == Some(true);
            entries.iter().find(is_selected)
        })
}

fn counts<F: Fields>(inbound: Option<&F>, outbound: Option<&F>, pair: Option<&F>) -> Counts {
    let count = |entry: Option<&F>, name| entry.and_then(|e| e.number(name)).unwrap_or(0.0);
    let tells_last_packet = inbound.and_then(|inbound| inbound.number(LAST_PACKET));
    let media = match tells_last_packet {
        Some(_) => 0.0,
        None => count(inbound, "packetsReceived"),
    };
    Counts {
        at_ms: count(outbound, "timestamp"),
        bytes_sent: count(outbound, "bytesSent"),
        bytes_received: count(inbound, "bytesReceived"),
        packets_received: count(inbound, "packetsReceived"),
        packets_lost: count(inbound, "packetsLost"),
        samples: count(inbound, "totalSamplesReceived"),
        concealed: count(inbound, "concealedSamples") - count(inbound, "silentConcealedSamples"),
        messages_received: count(pair, "responsesReceived")
            + count(pair, "requestsReceived")
            + media,
    }
}

fn milliseconds(seconds: Option<f64>) -> Option<f64> {
    seconds.map(|seconds| seconds * 1000.0)
}

fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 {
        (some / all).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
#[cfg(not(target_arch = "wasm32"))]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Two reports of one call, two seconds apart.
    fn recorded(reports: &str) -> [Vec<Value>; 2] {
        serde_json::from_str(reports).unwrap()
    }

    fn chromium() -> [Vec<Value>; 2] {
        recorded(include_str!("stats/chromium.json"))
    }

    fn firefox() -> [Vec<Value>; 2] {
        recorded(include_str!("stats/firefox.json"))
    }

    /// The second of two reports, with an entry's counters changed.
    fn changed(kind: &str, changes: &[(&str, f64)]) -> CallStats {
        let [first, mut second] = chromium();
        let mut meter = StatsMeter::default();
        meter.read(&first);
        let entry = second.iter_mut().find(|e| e["type"] == kind).unwrap();
        for (name, by) in changes {
            entry[name] = json!(entry[name].as_f64().unwrap() + by);
        }
        meter.read(&second)
    }

    #[test]
    fn reports_of_browsers_are_read() {
        let mut meter = StatsMeter::default();
        let [first, second] = chromium();
        assert_eq!(meter.read(&first).bitrate_sent, None);
        let stats = meter.read(&second);
        assert_eq!(stats.quality, "good");
        assert_eq!(stats.round_trip_ms, Some(2.0));
        assert_eq!(stats.jitter_ms, Some(4.0));
        assert_eq!(stats.loss_sent, Some(0.0));
        assert_eq!((stats.loss_received, stats.concealed), (0.0, 0.0));
        assert_eq!(stats.bitrate_sent.unwrap().round(), 32_066.0);
        assert_eq!(stats.bitrate_received.unwrap().round(), 32_382.0);

        let mut meter = StatsMeter::default();
        let [first, second] = firefox();
        meter.read(&first);
        let stats = meter.read(&second);
        assert_eq!((stats.quality, stats.round_trip_ms), ("good", Some(0.0)));
        assert_eq!(stats.bitrate_received.unwrap().round(), 64_336.0);
    }

    #[test]
    fn loss_and_concealment_are_of_the_last_two_seconds() {
        // 100 packets arrived between the two, and 96,000 samples were played.
        let stats = changed("inbound-rtp", &[("packetsLost", 25.0)]);
        assert_eq!((stats.loss_received, stats.quality), (0.2, "poor"));
        let stats = changed("inbound-rtp", &[("concealedSamples", 4_800.0)]);
        assert_eq!((stats.concealed, stats.quality), (0.05, "fair"));
        // Silence that was made up is not heard.
        let silence = [
            ("concealedSamples", 4_800.0),
            ("silentConcealedSamples", 4_800.0),
        ];
        assert_eq!(changed("inbound-rtp", &silence).quality, "good");
        // Nor is a short time after the last packet before a pause a bad connection.
        let pause = |made_up| {
            let changes = [("packetsReceived", -90.0), ("concealedSamples", made_up)];
            changed("inbound-rtp", &changes)
        };
        assert_eq!(pause(8_160.0).quality, "good");
        assert_eq!(
            (pause(14_400.0).concealed, pause(14_400.0).quality),
            (0.05, "fair")
        );
        // Packets that were lost are no pause.
        let lost = [
            ("packetsReceived", -90.0),
            ("packetsLost", 90.0),
            ("concealedSamples", 4_800.0),
        ];
        assert_eq!(changed("inbound-rtp", &lost).concealed, 0.05);
        // Packets that come late are no longer lost.
        let stats = changed("inbound-rtp", &[("packetsLost", -3.0)]);
        assert_eq!(stats.loss_received, 0.0);
    }

    #[test]
    fn each_figure_makes_a_call_fair_or_poor() {
        let loss = |by| changed("remote-inbound-rtp", &[("fractionLost", by)]).quality;
        assert_eq!(loss(0.019), "good");
        assert_eq!(loss(0.02), "fair");
        assert_eq!(loss(0.079), "fair");
        assert_eq!(loss(0.08), "poor");
        let trip = |by| changed("candidate-pair", &[("currentRoundTripTime", by)]).quality;
        assert_eq!(trip(0.2), "good");
        assert_eq!(trip(0.248), "fair");
        assert_eq!(trip(0.498), "poor");
    }

    /// The qualities of reports two seconds apart, of which each has counters and times of its own: seconds since the call began.
    fn qualities(reports: &[Value]) -> Vec<&'static str> {
        let mut meter = StatsMeter::default();
        let report = |(index, report): (usize, &Value)| {
            let at_ms = 1_000.0 + 2_000.0 * index as f64;
            let sent = report["sent"].as_f64().unwrap_or(at_ms);
            let mut entries = vec![
                json!({"type": "outbound-rtp", "timestamp": at_ms, "bytesSent": sent}),
                json!({"type": "transport", "selectedCandidatePairId": "pair"}),
                json!({"type": "candidate-pair", "id": "pair", "responsesReceived": report["stun"]}),
                json!({"type": "inbound-rtp", "packetsReceived": report["media"],
                    "lastPacketReceivedTimestamp": report["media_at"]}),
            ];
            if let Some(rtcp) = report["rtcp"].as_f64() {
                entries.push(json!({"type": "remote-inbound-rtp", "timestamp": rtcp}));
            }
            meter.read(&entries).quality
        };
        reports.iter().enumerate().map(report).collect()
    }

    #[test]
    fn a_backend_that_is_silent_for_three_seconds_is_poor() {
        // Reports are made at 1, 3, 5 and 7 s. The last report of the backend came at 2.5 s, or at 1.9 s.
        let rtcp = |times: [f64; 4]| qualities(&times.map(|at| json!({"rtcp": at})));
        assert_eq!(
            rtcp([500.0, 2_500.0, 2_500.0, 2_500.0]),
            ["good", "good", "good", "poor"]
        );
        assert_eq!(
            rtcp([500.0, 1_900.0, 1_900.0, 6_000.0]),
            ["good", "good", "poor", "good"]
        );
        // Any sign of it will do.
        let stun = [1, 2, 3, 3].map(|stun| json!({"rtcp": 500.0, "stun": stun}));
        assert_eq!(qualities(&stun), ["good"; 4]);
        let media = [1, 2, 3, 4].map(|media| json!({"rtcp": 500.0, "media": media}));
        assert_eq!(qualities(&media), ["good"; 4]);
        let last =
            [900.0, 2_900.0, 2_900.0, 2_900.0].map(|at| json!({"media_at": at, "media": at}));
        assert_eq!(qualities(&last), ["good", "good", "good", "poor"]);
        // It reports on what it is sent, so a page that sends nothing does not wait for it.
        let unsent = [500.0; 4].map(|at| json!({"rtcp": at, "sent": 7}));
        assert_eq!(qualities(&unsent), ["good"; 4]);
        // Before the first sign the call is not connected.
        assert_eq!(qualities(&[json!({}), json!({}), json!({})]), ["good"; 3]);
    }

    #[test]
    fn the_round_trip_is_known_without_ice_too_and_absent_before_it_was_measured() {
        let [mut report, _] = chromium();
        report.retain(|entry| entry["type"] != "candidate-pair");
        let stats = StatsMeter::default().read(&report);
        assert_eq!(stats.round_trip_ms, Some(1.648));
        let stats = StatsMeter::default().read::<Value>(&[]);
        assert_eq!((stats.round_trip_ms, stats.loss_sent), (None, None));
        assert_eq!(stats.quality, "good");
    }

    #[test]
    fn statistics_serialize_as_the_argument_of_their_callback() {
        let stats = StatsMeter::default().read(&chromium()[0]);
        let argument = serde_json::to_value(stats).unwrap();
        let mut names: Vec<_> = argument.as_object().unwrap().keys().collect();
        names.sort();
        assert_eq!(
            names,
            [
                "bitrateReceived",
                "bitrateSent",
                "candidateType",
                "concealed",
                "jitterMs",
                "lossReceived",
                "lossSent",
                "protocol",
                "quality",
                "roundTripMs"
            ]
        );
        assert_eq!(argument["bitrateSent"], Value::Null);
        assert_eq!(argument["candidateType"], "host");
        assert_eq!(argument["protocol"], "udp");
    }

    #[test]
    fn the_path_is_the_one_that_media_flows_over() {
        let some = |text: &str| Some(text.to_owned());
        for [report, _] in [chromium(), firefox()] {
            assert_eq!(path(&report), (some("host"), some("udp")));
        }
        // Chromium keeps two pairs that were nominated.
        let [mut report, _] = chromium();
        let used = report
            .iter_mut()
            .find(|e| e["type"] == "local-candidate")
            .unwrap();
        used["candidateType"] = json!("relay");
        used["relayProtocol"] = json!("tls");
        assert_eq!(path(&report), (some("relay"), some("tls")));
        // Older Firefox has no transports.
        let [mut report, _] = firefox();
        report.retain(|entry| entry["type"] != "transport");
        assert_eq!(path(&report), (some("host"), some("udp")));
        assert_eq!(path::<Value>(&[]), (None, None));
    }
}
