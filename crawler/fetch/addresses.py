"""Network addresses: the guard against private ones, and name resolution.

A page must not be able to direct the crawler to machines that only its operator can reach. The
guard checks the address of each connection, however it was named or written.
"""

import asyncio
import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

import aiodns
import pycares
from aiodns import error as dns_error
from aiohttp.abc import AbstractResolver, ResolveResult

from freshet.crawler.errors import NoSuchHost, ResolverSilent
from freshet.crawler.fetch.bounds import LruCache

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


_METADATA = (
    "169.254.169.254/32",  # most clouds
    "169.254.170.2/32",  # AWS, containers
    "100.100.100.200/32",  # Alibaba, inside 100.64.0.0/10
    "168.63.129.16/32",  # Azure, otherwise a public address
    "192.0.0.192/32",  # Oracle
    "fd00:ec2::254/128",  # AWS
    "fd20:ce::254/128",  # Google
)
#: The first block that contains an address names it, so exceptions precede general blocks. Sources:
#: the IANA special-purpose address registries (RFC 6890) and the clouds' documentation.
_BLOCKS = (
    _block("cloud metadata", *_METADATA),
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
#: Unassigned networks, and networks with a local meaning, such as 64:ff9b:1::/48 of RFC 8215, in
#: which the position of the IPv4 address is unknown.
_UNASSIGNED = _block("reserved")


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Filter of addresses that are not public servers.

    ``allow_private`` allows loopback, private and carrier-grade NAT networks. ``allow_networks``
    are allowed as well, including metadata and link-local addresses. ``loopback_only`` restricts
    all that to loopback: without a contact URL, the crawler visits no public server. An IPv6
    address that embeds IPv4 addresses is checked as these.
    """

    allow_private: bool = False
    allow_networks: tuple[Network, ...] = ()
    loopback_only: bool = False

    def refusal(self, address: str) -> str | None:
        """Return why the address may not be contacted, or None if it may."""
        parsed = _parsed(address)
        if parsed is None:
            return f"{address!r} is not an IP address"
        reasons = (self._reason(meant) for meant in _meanings(parsed))
        reason = next(filter(None, reasons), None)
        return None if reason is None else f"{address} is {reason}"

    def _reason(self, address: Address) -> str | None:
        block = _block_of(address)
        name = block.name if block else "public"
        if self.loopback_only and name != "loopback":
            return f"{_kind(name)}; without a contact URL only loopback may be contacted"
        if block is None or (self.allow_private and block.is_private):
            return None
        if any(_holds(n, address) for n in self.allow_networks):
            return None
        switch = "--allow-private-addresses" if block.is_private else "network.allow_networks"
        return f"{_kind(name)}; allow it with {switch}"


def _kind(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name} address"


@lru_cache(maxsize=1_024)
def is_disguised(host: str) -> bool:
    """Return whether a host name is a number, but not an IPv4 address in canonical form.

    Resolvers accept ``2130706433``, ``0x7f.1`` and ``0177.0.0.1`` for 127.0.0.1. A canonical URL
    never has such a host ("ends in a number", WHATWG URL standard, section 3.5).
    """
    if ":" in host:
        return False
    label = host.rstrip(".").rpartition(".")[2].lower()
    return _NUMERIC_LABEL.fullmatch(label) is not None and _parsed(host) is None


def is_address(host: str) -> bool:
    """Return whether a URL's host is an address, not a name."""
    return _parsed(host.removeprefix("[").removesuffix("]")) is not None


def is_this_machine(host: str) -> bool:
    """Return whether a URL's host is on loopback, by name or by address."""
    address = _parsed(host.removeprefix("[").removesuffix("]"))
    named = host == "localhost" or host.endswith(".localhost")
    return named if address is None else address.is_loopback


def _meanings(address: Address) -> tuple[Address, ...]:
    """Return the IPv4 addresses that an IPv6 address embeds, or else the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if (mapped := address.ipv4_mapped) is not None:
        return (mapped,)
    if (relayed := address.sixtofour) is not None:
        return (relayed,)
    if (teredo := address.teredo) is not None:
        return teredo
    low = int(address) & _LOW_32_BITS
    # ::, ::1 and their neighbours embed no IPv4 address.
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


# -- resolver ----------------------------------------------------------------
# A crawl requests the same few thousand hosts, and the same dead ones in a list of dead links, so
# answers are cached for their TTL, and failures for a while.

#: localhost is resolved without the network (RFC 6761, section 6.3). IPv4 comes first, because
#: servers with only one address family use that.
_LOOPBACK = ("127.0.0.1", "::1")
#: No name server answered.
_SILENT = frozenset({dns_error.ARES_ETIMEOUT, dns_error.ARES_ECONNREFUSED})
_MISSING = frozenset({dns_error.ARES_ENOTFOUND, dns_error.ARES_ENODATA, dns_error.ARES_EBADNAME})
#: Addresses of a name to keep and try; an answer over TCP may have thousands.
_ADDRESSES = 16
#: Queries between two resets of the cache of c-ares, which keeps answers for up to an hour.
_EMPTIED_AFTER = 256
#: A URL's host is a full name, so search lists do not apply. EDNS is the default of c-ares.
_FLAGS = pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS


@dataclass(frozen=True, slots=True)
class DnsLimits:
    """Lifetimes of DNS answers, and limits of queries.

    TTLs are raised to ``dns_min_ttl_s``, because some are 0 and the links of a page are requested
    right after it. They are cut to ``dns_max_ttl_s``, so that a site that moves is found within a
    day. "No such name" is cached for ``dns_negative_ttl_s``, a name server's failure for
    ``dns_failure_ttl_s``. The cache has ``dns_max_names`` answers and drops the least recently used
    one. Each of ``dns_tries`` waits at least ``dns_timeout_s`` for a name server.
    """

    dns_min_ttl_s: float = 5.0
    dns_max_ttl_s: float = 86_400.0
    dns_negative_ttl_s: float = 60.0
    dns_failure_ttl_s: float = 5.0
    dns_timeout_s: float = 2.0
    dns_tries: int = 2
    dns_max_names: int = 10_000


class _Answer(NamedTuple):
    """The addresses of a name, or the reason for having none."""

    addresses: tuple[str, ...]
    keep_s: float = float("inf")
    failure: type[OSError] = OSError
    why: str = ""


class CachingResolver(AbstractResolver):
    """Resolver over c-ares with a cache; it has at most one query per name in progress.

    ``overrides`` map host names to a fixed address. ``nameservers`` (``address`` or
    ``address:port``) replace the system's. The clock is in monotonic seconds.

    Raises:
        ValueError: on construction, if an override is not an IP address.
    """

    def __init__(
        self,
        limits: DnsLimits | None = None,
        overrides: Mapping[str, str] | None = None,
        *,
        nameservers: Sequence[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits or DnsLimits()
        self._overrides = {
            _key(host): _Answer((str(ip_address(address)),))
            for host, address in (overrides or {}).items()
        }
        self._nameservers = nameservers
        self._monotonic = monotonic
        self._kept: LruCache[str, tuple[float, _Answer]] = LruCache(self._limits.dns_max_names)
        self._under_way: dict[str, asyncio.Task[_Answer]] = {}
        self._channel: aiodns.DNSResolver | None = None
        self._asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host in the order of preference, for aiohttp.

        Raises:
            NoSuchHost: if the name does not exist or has no address of that family.
            OSError: if the name servers did not answer, or failed.
        """
        answer = await self._answer(host)
        if not answer.addresses:
            raise answer.failure(answer.why)
        results = [_result(host, address, port) for address in answer.addresses]
        wanted = [r for r in results if family in (socket.AF_UNSPEC, r["family"])]
        if not wanted:
            raise NoSuchHost(f"{host} has no address of the family {family.name}")
        return wanted

    async def addresses(self, host: str) -> list[str]:
        """Return the addresses of a host (an IP literal is its own); empty if it has none."""
        literal = host.removeprefix("[").removesuffix("]")
        if _parsed(literal) is not None:
            return [literal]
        return list((await self._answer(host)).addresses)

    async def close(self) -> None:
        """Cancel the queries in progress."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def _answer(self, host: str) -> _Answer:
        name = _key(host)
        known = self._known(name)
        if known is not None:
            return known
        if name not in self._under_way:
            task = asyncio.create_task(self._look_up(name), name=f"DNS {name}")
            self._under_way[name] = task
            task.add_done_callback(lambda _: self._under_way.pop(name))
        # The time-out of one caller must not end a query that others await.
        return await asyncio.shield(self._under_way[name])

    def _known(self, name: str) -> _Answer | None:
        if name in self._overrides:
            return self._overrides[name]
        if name == "localhost" or name.endswith(".localhost"):
            return _Answer(_LOOPBACK)
        expires_at, answer = self._kept.use(name) or (0.0, None)
        return answer if self._monotonic() < expires_at else None

    async def _look_up(self, name: str) -> _Answer:
        answer = await self._ask(name)
        self._kept[name] = (self._monotonic() + answer.keep_s, answer)
        return answer

    async def _ask(self, name: str) -> _Answer:
        # Created on first use, because it belongs to the running loop.
        self._channel = channel = self._channel or aiodns.DNSResolver(
            list(self._nameservers) or None,
            timeout=self._limits.dns_timeout_s,
            tries=self._limits.dns_tries,
            flags=_FLAGS,
        )
        self._asked += 1
        if self._asked % _EMPTIED_AFTER == 0:
            channel._channel.reinit()  # noqa: SLF001  # aiodns exposes neither this nor the cache
        try:
            found = await channel.getaddrinfo(name, type=socket.SOCK_STREAM)
        except dns_error.DNSError as error:
            return self._failure(name, *error.args)
        # A node's address is (bytes, port, …); getaddrinfo may repeat it per protocol.
        nodes = found.nodes[:_ADDRESSES]
        addresses = dict.fromkeys(node.addr[0].decode("ascii") for node in nodes)
        if not addresses:
            return self._failure(name, dns_error.ARES_ENODATA, "no address")
        ttl_s = max(min(node.ttl for node in found.nodes), self._limits.dns_min_ttl_s)
        return _Answer(tuple(addresses), min(ttl_s, self._limits.dns_max_ttl_s))

    def _failure(self, name: str, code: int, message: str) -> _Answer:
        why = f"{name[:253]}: {message[:1].lower()}{message[1:]}"
        if code in _MISSING:
            return _Answer((), self._limits.dns_negative_ttl_s, NoSuchHost, why)
        if code in _SILENT:
            return _Answer((), 0.0, ResolverSilent, why)
        return _Answer((), self._limits.dns_failure_ttl_s, OSError, why)


def _key(host: str) -> str:
    return host.rstrip(".").lower()


def _parsed(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )
