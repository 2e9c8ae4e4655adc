//! Which addresses are public. Everything that could lead to this host, its network or a cloud's
//! metadata is not, in whichever form of IPv6 it hides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// IPv4 ranges that are not public: base, prefix length, what it is (IANA's special-purpose registry).
const V4: [([u8; 4], u32, &str); 18] = [
    ([0, 0, 0, 0], 8, "unspecified"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "carrier-grade NAT"),
    ([127, 0, 0, 0], 8, "loopback"),
    // The metadata services of most clouds.
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 31, 196, 0], 24, "reserved"),
    ([192, 52, 193, 0], 24, "reserved"),
    ([192, 88, 99, 0], 24, "6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmark"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    // A cloud's metadata behind an address that looks public.
    ([168, 63, 129, 16], 32, "metadata"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

/// IPv6 ranges within 2000::/3 that are not public, and names for those outside.
const V6: [(u128, u32, &str); 15] = [
    (0, 128, "unspecified"),
    (1, 128, "loopback"),
    (0, 96, "IPv4-compatible"),
    (0x0064_ff9b_0001 << 80, 48, "local NAT64"),
    (0x0100 << 112, 64, "discard"),
    // Teredo, benchmark and ORCHID among others.
    (0x2001 << 112, 23, "reserved"),
    (0x2001_0db8 << 96, 32, "documentation"),
    (0x2002 << 112, 16, "6to4"),
    (0x3fff << 112, 20, "documentation"),
    (0x5f00 << 112, 16, "segment routing"),
    (0xfc00 << 112, 7, "private"),
    (0xfe80 << 112, 10, "link-local"),
    (0xfec0 << 112, 10, "site-local"),
    (0xff00 << 112, 8, "multicast"),
    (0xffff << 48, 96, "IPv4-translated"),
];

/// The kind of range that an address is in; `None` where it is public.
pub fn range_of(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => range_of_v4(address),
        IpAddr::V6(address) => range_of_v6(address),
    }
}

fn range_of_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let inside = |base: [u8; 4], length: u32| {
        let mask = u32::MAX << (32 - length);
        bits & mask == u32::from_be_bytes(base) & mask
    };
    V4.iter().find(|(base, length, _)| inside(*base, *length)).map(|(_, _, kind)| *kind)
}

fn range_of_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    let embedded = Ipv4Addr::from_bits(u32::try_from(bits & 0xffff_ffff).unwrap_or(0));
    // What stands behind an IPv4 address in IPv6's clothes is that address.
    if address.to_ipv4_mapped().is_some() || bits >> 32 == 0x0064_ff9b << 64 {
        return range_of_v4(embedded);
    }
    let inside = |base: u128, length: u32| {
        let mask = u128::MAX << (128 - length);
        bits & mask == base & mask
    };
    let named = V6.iter().find(|(base, length, _)| inside(*base, *length));
    let global = inside(0x2000 << 112, 3);
    named.map(|(_, _, kind)| *kind).or((!global).then_some("reserved"))
}

/// Whether an address is this host's own. Asks the routing table; nothing is sent.
fn is_own(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    // Without a route it cannot be dialled either.
    source.is_ok_and(|source| source.ip() == address.ip())
}

/// Which addresses may be dialled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    excepted: Option<SocketAddr>,
}

impl AddressPolicy {
    /// Public addresses of other hosts. The only policy that a run gets.
    pub fn public() -> Self {
        AddressPolicy::default()
    }

    /// The same, and one address more, for a test's server on loopback. Nothing that a user can set
    /// leads here.
    pub fn public_and(address: SocketAddr) -> Self {
        AddressPolicy { excepted: Some(address) }
    }

    /// The kind of an address that may not be dialled.
    pub fn refusal(&self, address: SocketAddr) -> Option<&'static str> {
        if self.excepted == Some(address) {
            return None;
        }
        range_of(address.ip()).or_else(|| is_own(address).then_some("this host"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_that_is_not_public_has_its_kind() {
        let table = [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("10.0.0.1", "private"),
            ("10.255.255.255", "private"),
            ("100.64.0.1", "carrier-grade NAT"),
            ("100.100.100.200", "carrier-grade NAT"),
            ("100.127.255.255", "carrier-grade NAT"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("169.254.170.2", "link-local"),
            ("168.63.129.16", "metadata"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.192", "reserved"),
            ("192.0.2.1", "documentation"),
            ("192.88.99.1", "6to4 relay"),
            ("192.168.1.1", "private"),
            ("198.18.0.1", "benchmark"),
            ("198.19.255.255", "benchmark"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.7", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "IPv4-compatible"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("::ffff:169.254.169.254", "link-local"),
            ("::ffff:0:7f00:1", "IPv4-translated"),
            ("64:ff9b::7f00:1", "loopback"),
            ("64:ff9b::a9fe:a9fe", "link-local"),
            ("64:ff9b:1::1", "local NAT64"),
            ("100::1", "discard"),
            ("2001::1", "reserved"),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),
            ("2001:2::1", "reserved"),
            ("2001:20::1", "reserved"),
            ("2001:db8::1", "documentation"),
            ("2002:7f00:1::1", "6to4"),
            ("2002:a9fe:a9fe::", "6to4"),
            ("3fff::1", "documentation"),
            ("5f00::1", "segment routing"),
            ("4000::1", "reserved"),
            ("fc00::1", "private"),
            ("fd00:ec2::254", "private"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
        ];
        for (text, want) in table {
            let address = text.parse().expect("an address");
            assert_eq!(range_of(address), Some(want), "{text}");
        }
    }

    #[test]
    fn public_addresses_are_public_and_so_are_those_behind_nat64() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "::ffff:8.8.8.8",
        ] {
            assert_eq!(range_of(text.parse().expect("an address")), None, "{text}");
        }
    }

    #[test]
    fn this_host_s_own_addresses_are_found_by_the_routing_table() {
        assert!(is_own("127.0.0.1:80".parse().expect("an address")));
        assert!(!is_own("192.0.2.1:80".parse().expect("an address")));
    }

    #[test]
    fn an_exception_is_one_address_with_its_port() {
        let open: SocketAddr = "127.0.0.1:8080".parse().expect("an address");
        let policy = AddressPolicy::public_and(open);
        let seen = ["127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.2:8080"]
            .map(|text| policy.refusal(text.parse().expect("an address")));
        assert_eq!(seen, [None, Some("loopback"), Some("loopback")]);
        assert_eq!(AddressPolicy::public().refusal(open), Some("loopback"));
    }
}
