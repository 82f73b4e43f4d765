//! What the engine counted; the caller turns it into metrics and quality reports.

/// Counters of one call since its start, and the jitter delay of this moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets that came, whatever became of them.
    pub packets_received: u64,
    /// Packets that were waited for in vain.
    pub packets_lost: u64,
    /// Packets that came after they had been given up.
    pub packets_late: u64,
    /// Packets that came more than once.
    pub packets_duplicate: u64,
    /// Frames that packet loss concealment made up.
    pub frames_concealed: u64,
    /// Lost frames that came back from the in-band redundancy of the next packet.
    pub frames_recovered: u64,
    /// Frames of speech that were sent.
    pub frames_sent: u64,
    /// How long a missing packet is waited for now, in milliseconds.
    pub jitter_delay_ms: u32,
    /// The jitter of the last two seconds: the 95th percentile of delays relative to the fastest packet, in milliseconds; `None` until enough packets came.
    pub jitter_ms: Option<u32>,
}
