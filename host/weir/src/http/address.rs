//! Which IP addresses may be dialled.
//!
//! A vendor lives on the public internet. An answer, a link, a redirect or a name server that points inwards
//! (loopback, the private network, a cloud's metadata service) is refused, unless the user said for this connection
//! that its vendor is there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a connection allows beyond public addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddressPolicy {
    /// This machine: only when the origin itself is written as a loopback host.
    pub loopback: bool,
    /// Private networks: only with `allow_private = true`.
    pub private: bool,
}

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    Public,
    Loopback,
    /// Private, unique local, carrier-grade NAT, benchmark nets.
    Private,
    /// Link-local, cloud metadata, multicast, unspecified, reserved: never a vendor.
    Never,
}

/// Metadata services of clouds outside the link-local range.
const METADATA_V4: Ipv4Addr = Ipv4Addr::new(100, 100, 100, 200);
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

/// May this address be dialled? The error is the reason, fit for a message.
pub fn address_allowed(address: IpAddr, policy: AddressPolicy) -> Result<(), &'static str> {
    match zone(address) {
        Zone::Public => Ok(()),
        Zone::Loopback if policy.loopback || policy.private => Ok(()),
        Zone::Private if policy.private => Ok(()),
        Zone::Loopback => Err("the address is this machine's own, and the origin is not"),
        Zone::Private => Err(
            "the address is in a private network; if the vendor is there, set allow_private = true",
        ),
        Zone::Never => Err("the address is link-local, a metadata service or reserved"),
    }
}

fn zone(address: IpAddr) -> Zone {
    match address {
        IpAddr::V4(address) => zone_v4(address),
        IpAddr::V6(address) => zone_v6(address),
    }
}

fn zone_v4(address: Ipv4Addr) -> Zone {
    match address.octets() {
        _ if address == METADATA_V4 => Zone::Never,
        [127, ..] => Zone::Loopback,
        [10, ..] | [192, 168, ..] => Zone::Private,
        [172, second, ..] if second & 0xf0 == 16 => Zone::Private,
        [100, second, ..] if second & 0xc0 == 64 => Zone::Private,
        [198, 18 | 19, ..] => Zone::Private,
        [0, ..] | [169, 254, ..] | [192, 0, 0 | 2, _] => Zone::Never,
        [198, 51, 100, _] | [203, 0, 113, _] => Zone::Never,
        [first, ..] if first >= 224 => Zone::Never,
        _ => Zone::Public,
    }
}

fn zone_v6(address: Ipv6Addr) -> Zone {
    let segments = address.segments();
    let [.., seventh, eighth] = segments;
    match segments {
        _ if address == METADATA_V6 => Zone::Never,
        [0, 0, 0, 0, 0, 0, 0, 1] => Zone::Loopback,
        // Forms that carry an IPv4 address: mapped, compatible, translated (RFC 6052), 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            zone_v4(v4(seventh, eighth))
        }
        [0, 0, 0, 0, 0, 0, ..] => Zone::Never,
        [0x2002, high, low, ..] => match zone_v4(v4(high, low)) {
            Zone::Public => Zone::Public,
            _ => Zone::Never,
        },
        [0x64, 0xff9b, 1, ..] => Zone::Private,
        // Teredo hides an IPv4 address; documentation.
        [0x2001, 0 | 0xdb8, ..] => Zone::Never,
        [first, ..] if first & 0xfe00 == 0xfc00 => Zone::Private,
        [first, ..] if first & 0xffc0 == 0xfec0 => Zone::Private,
        [first, ..] if first & 0xffc0 == 0xfe80 => Zone::Never,
        [first, ..] if first & 0xff00 == 0xff00 => Zone::Never,
        _ => Zone::Public,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PUBLIC: AddressPolicy = AddressPolicy {
        loopback: false,
        private: false,
    };
    const LOOPBACK: AddressPolicy = AddressPolicy {
        loopback: true,
        private: false,
    };
    const PRIVATE: AddressPolicy = AddressPolicy {
        loopback: false,
        private: true,
    };

    fn allowed(address: &str, policy: AddressPolicy) -> bool {
        address_allowed(address.parse().unwrap(), policy).is_ok()
    }

    #[test]
    fn public_addresses_pass_everywhere() {
        for address in [
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(allowed(address, PUBLIC), "{address}");
        }
    }

    #[test]
    fn private_addresses_need_the_users_word() {
        for address in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "fc00::1",
            "fd12:3456::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
        ] {
            assert!(!allowed(address, PUBLIC), "{address}");
            assert!(!allowed(address, LOOPBACK), "{address}");
            assert!(allowed(address, PRIVATE), "{address}");
        }
    }

    #[test]
    fn loopback_needs_an_origin_on_loopback() {
        for address in ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"] {
            assert!(!allowed(address, PUBLIC), "{address}");
            assert!(allowed(address, LOOPBACK), "{address}");
        }
    }

    #[test]
    fn some_addresses_are_never_a_vendors() {
        for address in [
            "169.254.169.254",
            "100.100.100.200",
            "fd00:ec2::254",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "fe80::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
            "::7f00:1",
            "2001:0:1::1",
        ] {
            assert!(!allowed(address, PRIVATE), "{address}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_judged_as_the_address_in_it(bits: u32, loopback: bool, private: bool) {
            let policy = AddressPolicy { loopback, private };
            let plain = Ipv4Addr::from(bits);
            prop_assert_eq!(
                address_allowed(IpAddr::V4(plain), policy),
                address_allowed(IpAddr::V6(plain.to_ipv6_mapped()), policy)
            );
        }
    }
}
