//! WebRTC.

use std::net::IpAddr;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{Secret, lists};

/// WebRTC.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MediaConfig {
    /// The one UDP port of all calls; 0: one that the system chooses at start.
    pub udp_port: u16,
    /// The address that clients reach the node at, IPv4 or IPv6, of the machine or of what stands in front of it; unset: the
    /// addresses of the machine's interfaces.
    pub public_ip: Option<IpAddr>,
    /// STUN and TURN servers handed to clients: an array of `{"urls": .., "username": .., "credential": ..}`, with one URL or an array of them, which
    /// the environment has as JSON; or URLs separated by commas. TURN has a username and a credential. A secret, since it may hold some.
    #[serde(deserialize_with = "lists::ice_servers")]
    pub ice_servers: Option<Secret>,
    /// The most calls at once on this node. Where models of this machine hear or speak in calls, there are no more than they keep
    /// up with, which is measured at the start.
    pub max_calls: u32,
    /// The most of them that belong to one partner; unset: half while other
    /// partners have calls or wanted some within ten minutes, and else seven eighths.
    pub max_calls_per_partner: Option<u32>,
    /// The most calls at once that the pages of one publishable key place from one network: an IPv4 address, or a /64 of IPv6. It does not apply
    /// to visitors that are not told apart (see `http.trusted_proxies`).
    pub max_calls_per_address: u32,
    /// Opus bit rate of the character's voice, in bits per second.
    pub bitrate_bps: i32,
}

impl Default for MediaConfig {
    fn default() -> Self {
        Self {
            udp_port: 0,
            public_ip: None,
            ice_servers: None,
            max_calls: 200,
            max_calls_per_partner: None,
            max_calls_per_address: 16,
            bitrate_bps: 40_000,
        }
    }
}

impl MediaConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        if let Some(ip) = self.public_ip.map(|ip| ip.to_canonical()) {
            let is_link_local = match ip {
                IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
                IpAddr::V6(ip) => ip.is_unicast_link_local(),
            };
            ensure!(
                !ip.is_unspecified() && !ip.is_multicast() && !is_link_local,
                "media.public_ip: {ip} is no address that clients can reach; leave it out for those of the interfaces"
            );
        }
        ensure!(self.max_calls >= 1, "media.max_calls: at least 1");
        ensure!(
            self.max_calls_per_partner != Some(0),
            "media.max_calls_per_partner: at least 1"
        );
        ensure!(
            self.max_calls_per_address >= 1,
            "media.max_calls_per_address: at least 1"
        );
        ensure!(
            (6_000..=128_000).contains(&self.bitrate_bps),
            "media.bitrate_bps: 6000 to 128000"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_address_is_one_that_clients_can_reach() {
        let validated = |ip: &str| {
            let config = MediaConfig {
                public_ip: Some(ip.parse().unwrap()),
                ..MediaConfig::default()
            };
            config.validate().map_err(|error| error.to_string())
        };
        for good in [
            "203.0.113.7",
            "2001:db8::7",
            "127.0.0.2",
            "10.0.0.7",
            "fd00::7",
        ] {
            assert_eq!(validated(good), Ok(()));
        }
        for wrong in [
            "0.0.0.0",
            "::",
            "::ffff:0.0.0.0",
            "224.0.0.1",
            "ff02::1",
            "fe80::1",
            "169.254.1.1",
            "255.255.255.255",
        ] {
            let error = validated(wrong).unwrap_err();
            assert!(error.starts_with("media.public_ip: "), "{wrong}: {error}");
        }
    }
}
