//! How much memory this process takes.

use std::fs;

/// The memory of this process that is resident now, in bytes, with the pages of files that it maps. `None` where the system does not tell.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resident_is_told_by_the_system() {
        assert_eq!(
            resident("VmHWM:\t    9 kB\nVmRSS:\t    1234 kB\n"),
            Some(1_263_616)
        );
        for malformed in [
            "",
            "VmRSS:\t kB",
            "VmRSS: 12 MB",
            "VmRSS: 99999999999999999999 kB",
        ] {
            assert_eq!(resident(malformed), None, "{malformed}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_filled_is_resident() {
        let before = resident_bytes().unwrap();
        let filled = vec![1_u8; 64_000_000];
        let after = resident_bytes().unwrap();
        assert!(after > before + 50_000_000, "{before} {after}");
        drop(filled);
    }
}
