"""Which network addresses may be contacted.

A page must not be able to send the crawler to machines that only its owner can reach. Each
connect is judged by the address itself, whatever name or spelling led to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_LOW_32_BITS = 0xFFFF_FFFF
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")


class _Block(NamedTuple):
    name: str
    networks: tuple[Network, ...]
    is_private: bool


def _block(name: str, *networks: str, is_private: bool = False) -> _Block:
    return _Block(name, tuple(ip_network(network) for network in networks), is_private)


#: The first block that holds an address names it, so the exceptions stand first. From the
#: IANA special-purpose address registries (RFC 6890) and the clouds' documentation.
_BLOCKS = (
    _block(
        "cloud metadata",
        "169.254.169.254/32",  # most clouds
        "169.254.170.2/32",  # AWS, containers
        "100.100.100.200/32",  # Alibaba, inside 100.64.0.0/10
        "168.63.129.16/32",  # Azure, otherwise a public address
        "192.0.0.192/32",  # Oracle
        "fd00:ec2::254/128",  # AWS
        "fd20:ce::254/128",  # Google
    ),
    _block("loopback", "127.0.0.0/8", "::1/128", is_private=True),
    _block("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", is_private=True),
    _block("private", "fc00::/7", is_private=True),
    _block("carrier-grade NAT", "100.64.0.0/10", is_private=True),
    _block("unspecified", "0.0.0.0/8", "::/128"),
    _block("link-local", "169.254.0.0/16", "fe80::/10"),
    _block("multicast", "224.0.0.0/4", "ff00::/8"),
    _block("documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    _block("documentation", "2001:db8::/32", "3fff::/20"),
    _block("benchmarking", "198.18.0.0/15", "2001:2::/48"),
    _block("reserved", "192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4"),
    _block("reserved", "2001:10::/28", "2001:20::/28"),
)
#: What the registries have given to nobody, and the networks whose meaning is local
#: (64:ff9b:1::/48 of RFC 8215 among them: where its IPv4 address stands is not known).
_UNASSIGNED = _block("reserved")


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Refuses the addresses that are nobody's public server.

    ``allow_private`` opens loopback, private and carrier-grade NAT networks;
    ``allow_networks`` open what they name, metadata and link-local addresses included.
    ``loopback_only`` narrows all that to loopback: without a contact URL the crawler does
    not visit strangers. An IPv6 address that stands for IPv4 addresses is judged as these.
    """

    allow_private: bool = False
    allow_networks: tuple[Network, ...] = ()
    loopback_only: bool = False

    def refusal(self, address: str) -> str | None:
        """Why the address may not be contacted, as a short sentence, or None if it may."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return f"{address!r} is not an IP address"
        reasons = (self._reason(meant) for meant in _meanings(parsed))
        reason = next(filter(None, reasons), None)
        return None if reason is None else f"{address} is refused: {reason}"

    def _reason(self, address: Address) -> str | None:
        block = _block_of(address)
        name = block.name if block else "public"
        if self.loopback_only and name != "loopback":
            return f"{name}, and without a contact URL only loopback may be contacted"
        if block is None or (self.allow_private and block.is_private):
            return None
        return None if any(_holds(n, address) for n in self.allow_networks) else name


def is_disguised(host: str) -> bool:
    """Whether a host name is a number, yet no IPv4 address in its one canonical spelling.

    Resolvers take ``2130706433``, ``0x7f.1`` and ``0177.0.0.1`` for 127.0.0.1. A canonical
    URL never holds such a host ("ends in a number", WHATWG URL standard, section 3.5).
    """
    if ":" in host:
        return False
    label = host.rstrip(".").rpartition(".")[2].lower()
    return _NUMERIC_LABEL.fullmatch(label) is not None and not _is_ipv4(host)


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True


def _meanings(address: Address) -> tuple[Address, ...]:
    """The IPv4 addresses that an IPv6 address stands for, else the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if (mapped := address.ipv4_mapped) is not None:
        return (mapped,)
    if (relayed := address.sixtofour) is not None:
        return (relayed,)
    if (teredo := address.teredo) is not None:
        return teredo
    low = int(address) & _LOW_32_BITS
    # ::, ::1 and their neighbours are IPv6 addresses of their own right.
    if address in _NAT64 or (address in _COMPATIBLE and low > 0xFFFF):
        return (IPv4Address(low),)
    return (address,)


def _block_of(address: Address) -> _Block | None:
    for block in _BLOCKS:
        if any(_holds(network, address) for network in block.networks):
            return block
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return _UNASSIGNED
    return None


def _holds(network: Network, address: Address) -> bool:
    return network.version == address.version and address in network
