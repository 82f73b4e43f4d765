//! How much memory models keep, as the server says.

use super::*;

/// A number of kB that the system tells of this process.
fn told(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.unwrap().trim().strip_suffix("kB").unwrap();
    kibibytes.trim().parse::<u64>().unwrap() * 1_024
}

#[test]
fn what_models_keep_is_told() {
    let providers = with_models(folder(), |_| {}).unwrap();
    let kept = &providers.model_bytes;
    println!("{kept:?}");
    // Whisper's weights become smaller than in their file, and are kept with what it hears of silence.
    for (model, least, most) in [
        ("whisper-tiny.en", 30_000_000, 120_000_000),
        ("piper-en_US-joe-medium", 63_201_294, 63_201_294),
        ("all-minilm-l6-v2", 20_000_000, 60_000_000),
        // Once for calls and once for transcripts.
        ("silero-vad", 2 * 1_288_203, 2 * 1_288_203),
    ] {
        assert!((least..=most).contains(&kept[model]), "{model}: {kept:?}");
    }
    assert!(!kept.contains_key("smart-turn-v3.2"), "nobody asked for it");
    let all: u64 = kept.values().sum();
    assert!(all < told("VmRSS:"), "{kept:?}");
}
