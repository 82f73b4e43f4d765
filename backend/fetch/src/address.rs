//! Which addresses are public: the IANA special-purpose registries (RFC 6890 and its successors), as a list of what is
//! refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not globally reachable, or not one host: address, prefix length.
const REFUSED_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),        // "this network", RFC 791
    ([10, 0, 0, 0], 8),       // private use, RFC 1918
    ([100, 64, 0, 0], 10),    // carrier-grade NAT, RFC 6598
    ([127, 0, 0, 0], 8),      // loopback, RFC 1122
    ([169, 254, 0, 0], 16),   // link local and cloud metadata, RFC 3927
    ([172, 16, 0, 0], 12),    // private use, RFC 1918
    ([192, 0, 0, 0], 24),     // IETF protocol assignments, RFC 6890
    ([192, 0, 2, 0], 24),     // documentation, RFC 5737
    ([192, 31, 196, 0], 24),  // AS112, RFC 7535
    ([192, 52, 193, 0], 24),  // AMT, RFC 7450
    ([192, 88, 99, 0], 24),   // 6to4 relay anycast, RFC 7526
    ([192, 168, 0, 0], 16),   // private use, RFC 1918
    ([192, 175, 48, 0], 24),  // AS112, RFC 7534
    ([198, 18, 0, 0], 15),    // benchmarking, RFC 2544
    ([198, 51, 100, 0], 24),  // documentation, RFC 5737
    ([203, 0, 113, 0], 24),   // documentation, RFC 5737
    ([224, 0, 0, 0], 4),      // multicast, RFC 5771
    ([240, 0, 0, 0], 4),      // reserved and broadcast, RFC 1112, RFC 8190
    ([168, 63, 129, 16], 32), // Azure's platform address: public by number, internal by use
];

/// IPv6 blocks inside of `2000::/3` that are refused; everything outside of it is refused anyway.
const REFUSED_V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // IETF protocol assignments with Teredo, ORCHID, benchmarking, RFC 2928
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation, RFC 3849
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), // AS112, RFC 7534
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation, RFC 9637
];

/// Whether an address is one host of the public internet. IPv6 forms that carry an IPv4 address (mapped, compatible,
/// NAT64, 6to4) are judged by that address too.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !REFUSED_V4
        .iter()
        .any(|(block, prefix)| (bits ^ Ipv4Addr::from(*block).to_bits()).leading_zeros() >= *prefix)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // v4-mapped, RFC 4291; the kernel connects to the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low] => return is_public_v4(embedded(high, low)),
        // NAT64's well-known prefix, RFC 6052.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => return is_public_v4(embedded(high, low)),
        // 6to4, RFC 3056.
        [0x2002, high, low, ..] if !is_public_v4(embedded(high, low)) => return false,
        _ => {}
    }
    // Global unicast is 2000::/3; loopback, unique local, link local, site local and multicast lie outside of it.
    let global_unicast = segments[0] & 0xe000 == 0x2000;
    let bits = address.to_bits();
    global_unicast
        && !REFUSED_V6.iter().any(|(block, prefix)| {
            (bits ^ Ipv6Addr::from(*block).to_bits()).leading_zeros() >= *prefix
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    #[test]
    fn special_addresses_are_refused() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.31.196.1",
            "192.52.193.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "192.175.48.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            // IPv6
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.1.2.3",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "2002:c0a8:101::1",
            "2620:4f:8000::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!public(address), "{address}");
        }
    }

    #[test]
    fn ordinary_addresses_pass_up_to_the_edges_of_the_blocks() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "203.0.114.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "2002:808:808::1",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
        ] {
            assert!(public(address), "{address}");
        }
    }
}
