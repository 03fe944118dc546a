"""Connections: opened by aiohttp to allowed addresses only, kept alive, and closed."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.cookiejar import CookieJar
from ipaddress import ip_network
from typing import Final, NamedTuple
from urllib.request import Request as CookieRequest

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from yarl import URL

from freshet.crawler.errors import NoSuchHost, ResolverSilent, Unfetched
from freshet.crawler.fetch.addresses import AddressGuard, is_address
from freshet.crawler.fetch.bounds import RECEIVE_BYTES, connections
from freshet.crawler.fetch.connection import HeadLimits, HttpConnection

#: OpenSSL's errors if the peer speaks another protocol, such as plain HTTP.
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
)


#: Errors of this machine, independent of the host.
_LOCAL = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM), "no_descriptors"),
    **dict.fromkeys((errno.ENETDOWN, errno.ENETUNREACH, errno.EADDRNOTAVAIL), "no_network"),
}


class AddressRefused(OSError):
    """The address guard rejects a connection."""


class _GuardedResolver(AbstractResolver):
    """Resolver that drops the addresses that the guard rejects.

    So a host with allowed and rejected addresses is reached at an allowed one, and the error is
    clear if none is left. The guard itself checks each socket.
    """

    def __init__(self, resolver: AbstractResolver, guard: AddressGuard) -> None:
        self._resolver = resolver
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        refusals = [self._guard.refusal(result["host"]) for result in found]
        allowed = [r for r, refusal in zip(found, refusals, strict=True) if refusal is None]
        if not allowed:
            raise AddressRefused(f"{host}: {', '.join(filter(None, refusals))}")
        return allowed

    async def close(self) -> None:
        """Do nothing: the creator closes the resolver."""


class _ProxyResolver(_GuardedResolver):
    """Resolver of proxies; a missing proxy name must not count as a missing host."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            return await super().resolve(host, port, family)
        except NoSuchHost as error:
            raise OSError(f"the proxy {error}") from error


def _guarded_socket(guard: AddressGuard, info: aiohttp.AddrInfoType) -> socket.socket:
    """Open a socket; all sockets are opened here, so every hop and IP literal is checked."""
    family, kind, protocol, _, address = info
    refusal = guard.refusal(str(address[0]))
    if refusal is not None:
        raise AddressRefused(refusal)
    opened = socket.socket(family, kind, protocol)
    # One read brings this much into memory before any limit applies; the default is a quarter of a
    # MiB.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return opened


def guarded_connector(
    guard: AddressGuard, resolver: AbstractResolver, tls: ssl.SSLContext | None
) -> aiohttp.TCPConnector:
    """Return a connector to allowed addresses only, with IPv6 and IPv4 raced (RFC 8305).

    The caller's politeness limits the number of connections.
    """
    return aiohttp.TCPConnector(
        resolver=_GuardedResolver(resolver, guard),
        use_dns_cache=False,
        socket_factory=partial(_guarded_socket, guard),
        ssl=tls if tls is not None else True,
        limit=0,
        limit_per_host=0,
    )


def is_socks(proxy: str) -> bool:
    """Return whether the URL of a proxy is a SOCKS URL."""
    return proxy.startswith("socks")


@dataclass(frozen=True, slots=True)
class Access:
    """Special access to a site: request header fields, which may be secret; TLS; a proxy URL.

    ``public`` is the part that does not identify the user to the site, or None.
    """

    fields: Mapping[str, str]
    cookies: CookieJar | None = None
    tls: ssl.SSLContext | None = None
    proxy: str | None = None
    public: Access | None = None

    def fields_for(self, url: str) -> dict[str, str]:
        """Return the request header fields for a URL, with the matching cookies."""
        found = dict(self.fields)
        if self.cookies is not None:
            wanted = CookieRequest(url)  # noqa: S310 - nothing is opened
            self.cookies.add_cookie_header(wanted)
            if cookie := wanted.get_header("Cookie"):
                found["Cookie"] = cookie
        return found


#: Seconds for which a connection may be idle.
_IDLE_S = 15.0


class _Place(NamedTuple):
    """The destination of a connection, and the route to it."""

    scheme: str
    host: str
    port: int | None
    tls: ssl.SSLContext | None
    proxy: str | None


class _Way(NamedTuple):
    """An open connection; ``authorization`` is for a relaying proxy."""

    place: _Place
    connection: Connection
    is_relayed: bool
    authorization: str | None


def _is_relayed(place: _Place) -> bool:
    """Return whether a proxy relays the requests, instead of opening a tunnel."""
    return place.proxy is not None and place.scheme == "http" and not is_socks(place.proxy)


class Connections:
    """Connections to servers, direct and by proxies; some are kept alive for a while.

    The most recently idle connection serves the next exchange with the same place. At most as many
    are idle as may be in use, each for at most 15 s.
    """

    def __init__(
        self, guard: AddressGuard, resolver: AbstractResolver, tls: ssl.SSLContext | None,
        limits: HeadLimits, connect_timeout_s: float | None,
    ) -> None:  # fmt: skip
        self._guard, self._resolver, self._limits = guard, resolver, limits
        self._loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))
        self._timeout = aiohttp.ClientTimeout(connect=connect_timeout_s)
        self._direct = guarded_connector(guard, resolver, tls)
        self._proxied: dict[str, aiohttp.BaseConnector] = {}
        self._open: dict[HttpConnection, _Way] = {}
        self._most_idle = connections()
        #: Idle connections with the loop's time, the longest idle first.
        self._idle: OrderedDict[HttpConnection, float] = OrderedDict()
        #: Idle connections by place; a key equals a :class:`_Place`.
        self._places: dict[tuple[object, ...], list[HttpConnection]] = {}
        self._alarm: asyncio.TimerHandle | None = None

    async def get(
        self, url: URL, access: Access | None, *, is_fresh: bool = False
    ) -> HttpConnection:
        """Return a connection to a URL's host: an idle one, or else a new one.

        With ``is_fresh`` it is always a new one.

        Raises:
            Unfetched: no connection can be opened.
        """
        tls, proxy = (access.tls, access.proxy) if access is not None else (None, None)
        place = (url.scheme, url.raw_host or "", url.port, tls, proxy)
        idle = None if is_fresh else self._places.get(place)
        while idle:
            channel = idle.pop()
            if not idle:
                del self._places[place]
            del self._idle[channel]
            if channel.is_reusable:
                return channel
        if proxy is None:
            return await self._opened(_Place(*place), self._direct, url, None)
        return await self._through(proxy, _Place(*place), url)

    async def _through(self, proxy: str, place: _Place, url: URL) -> HttpConnection:
        """Return a new connection through a proxy."""
        # The proxy resolves names, so its owner decides which hosts can be reached through it.
        if is_address(place.host) and (why := self._guard.refusal(place.host)) is not None:
            raise Unfetched("address", why)
        if proxy not in self._proxied:
            self._proxied[proxy] = self._connector(proxy)
        return await self._opened(
            place, self._proxied[proxy], url, None if is_socks(proxy) else URL(proxy)
        )

    async def _opened(
        self, place: _Place, connector: aiohttp.BaseConnector, url: URL, proxy: URL | None
    ) -> HttpConnection:
        with own_failures():
            tls = True if place.tls is None else place.tls
            wanted = aiohttp.ClientRequest("GET", url, loop=self._loop, proxy=proxy, ssl=tls)
            connection = await connector.connect(wanted, [], self._timeout)
        handler, transport = connection.protocol, connection.transport
        if handler is None or transport is None:
            connection.close()
            raise Unfetched("hung_up", "the server hung up at once")
        channel = HttpConnection(self._limits, self._buffer, self._lost)
        channel.early = handler._tail  # noqa: SLF001 - what came before the request
        authorization = wanted.headers.get("Proxy-Authorization")
        self._open[channel] = _Way(place, connection, _is_relayed(place), authorization)
        transport.set_protocol(channel)
        channel.connection_made(transport)
        if place.proxy is not None:
            # The proxy's address is not the server's.
            channel.peer = None
        return channel

    def put_back(self, channel: HttpConnection) -> None:
        """Keep a connection for another exchange with the same place, or close it."""
        way = self._open.get(channel)
        # A proxy may forward the server's "keep-alive", and still hang up.
        if way is None or way.is_relayed or not channel.is_reusable:
            channel.close()
            return
        # Drop unread bytes of the last response.
        channel.take()
        self._places.setdefault(way.place, []).append(channel)
        self._idle[channel] = self._loop.time()
        if len(self._idle) > self._most_idle:
            self._drop(next(iter(self._idle)))
        if self._alarm is None:
            self._alarm = self._loop.call_later(_IDLE_S, self._sweep)

    def leave(self, channel: HttpConnection) -> None:
        """Close a connection, and the idle ones to the same place: they may be stale as well."""
        channel.close()
        if (way := self._open.get(channel)) is not None:
            for other in list(self._places.get(way.place, ())):
                self._drop(other)

    def way(self, channel: HttpConnection, url: URL) -> tuple[str, dict[str, str]]:
        """Return the request target for a connection, and the header fields for a proxy."""
        way = self._open[channel]
        if not way.is_relayed:
            return url.raw_path_qs, {}
        fields = {"Connection": "close"}
        if way.authorization is not None:
            fields["Proxy-Authorization"] = way.authorization
        return str(url.with_fragment(None)), fields

    def _drop(self, channel: HttpConnection) -> None:
        """Close an idle connection."""
        del self._idle[channel]
        place = self._open[channel].place
        self._places[place].remove(channel)
        if not self._places[place]:
            del self._places[place]
        channel.close()

    def _sweep(self) -> None:
        self._alarm = None
        while self._idle:
            channel, since = next(iter(self._idle.items()))
            if (left := since + _IDLE_S - self._loop.time()) > 0:
                self._alarm = self._loop.call_later(left, self._sweep)
                return
            self._drop(channel)

    def _lost(self, channel: HttpConnection) -> None:
        if channel in self._idle:
            self._drop(channel)
        if (way := self._open.pop(channel, None)) is not None:
            way.connection.close()

    def _connector(self, proxy: str) -> aiohttp.BaseConnector:
        """Return a connector to a proxy."""
        if is_socks(proxy):
            from aiohttp_socks import ProxyConnector  # noqa: PLC0415 - an extra

            # Drop "h" or "a": names are always resolved by the proxy.
            scheme, _, place = proxy.partition("://")
            return ProxyConnector.from_url(f"{scheme[:6]}://{place}", rdns=True, limit=0)
        # A proxy may be in a private network, because the user names it.
        anywhere = AddressGuard(allow_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")))
        return guarded_connector(anywhere, _ProxyResolver(self._resolver, anywhere), None)

    async def close(self) -> None:
        """Close all connections."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._idle.clear()
        self._places.clear()
        while self._open:
            channel, way = self._open.popitem()
            channel.close()
            way.connection.close()
        for connector in (self._direct, *self._proxied.values()):
            await connector.close()
        # Transports close their sockets in the next turns of the loop.
        for _ in range(2):
            await asyncio.sleep(0)


@contextmanager
def own_failures() -> Iterator[None]:
    """Turn the exceptions of opening a connection into :class:`Unfetched`."""
    try:
        yield
    except aiohttp.ClientError as error:
        reason, detail = _explain(error)
        raise Unfetched(reason, detail) from error
    except TimeoutError as error:
        raise Unfetched("timeout_connect", "no connection in time") from error
    except Exception as error:
        # The errors of aiohttp_socks have no common class, and it is imported only for a proxy.
        theirs = type(error).__module__.startswith(("aiohttp_socks.", "python_socks."))
        if not theirs and not isinstance(error, EOFError):
            raise
        why = "it hung up, or speaks another protocol" if not theirs else str(error)
        raise Unfetched("connect", f"by the proxy: {why}") from error


def _explain(error: Exception) -> tuple[str, str]:
    """Return the reason and a sentence for an exception of a library."""
    match error:
        case aiohttp.ClientProxyConnectionError():
            reason, detail = _explain_connect(error)
            # The site is unknown: its name and TLS were not tried.
            return (reason if reason in _LOCAL.values() else "connect"), f"to the proxy: {detail}"
        case aiohttp.ClientConnectorError():
            return _explain_connect(error)
        case aiohttp.ClientResponseError():
            return "connect", f"by the proxy: {error.message}"
        case aiohttp.InvalidURL():
            return "url", f"not a URL that can be fetched: {error}"
        case _:
            return "hung_up", str(error) or repr(error)


def _detail_of(error: OSError) -> str:
    return getattr(error, "verify_message", "") or error.strerror or str(error) or repr(error)


#: Reasons of our own errors.
_REASONS: Final[Mapping[type[OSError], str]] = {
    AddressRefused: "address", NoSuchHost: "no_such_host", ResolverSilent: "no_resolver",
}  # fmt: skip


def _explain_connect(error: aiohttp.ClientConnectorError) -> tuple[str, str]:
    cause = error.os_error
    detail = _detail_of(cause)
    for kind, reason in _REASONS.items():
        if isinstance(cause, kind):
            return reason, detail
    if cause.errno in _LOCAL:
        return _LOCAL[cause.errno], detail
    if isinstance(cause, ssl.SSLError):
        return ("not_tls" if cause.reason in _NOT_TLS else "tls"), detail
    found = re.search(r"Errno (\d+)", str(cause))
    reason = "dns" if isinstance(error, aiohttp.ClientConnectorDNSError) else "connect"
    return reason, os.strerror(int(found[1])) if found else detail
