"""The boundary to aiohttp: guarded connections, translated exceptions."""

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
from typing import Any, ClassVar, cast
from urllib.request import Request as CookieRequest
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_parser import RawResponseMessage
from yarl import URL

from freshet.crawler.bounds import INTERIM_RESPONSES, RECEIVE_BYTES, connections, meet
from freshet.crawler.fetch.addresses import AddressGuard, NoSuchHost, ResolverSilent, is_address
from freshet.crawler.fetch.responses import Unfetched

#: OpenSSL's errors when the peer speaks another protocol, plain HTTP for one.
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
)


#: Errors of this machine, whatever the host.
_LOCAL = {
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM), "no_descriptors"),
    **dict.fromkeys((errno.ENETDOWN, errno.ENETUNREACH, errno.EADDRNOTAVAIL), "no_network"),
}


class AddressRefused(OSError):
    """The address guard does not let a connection be opened."""


class _GuardedResolver(AbstractResolver):
    """Resolver that drops the addresses that would be refused.

    A name with a good and a refused address is thus reached at the good one, and the error
    is clear where none is left. The guard itself stands at the socket.
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
        """Do nothing: the resolver belongs to its maker."""


class _ProxyResolver(_GuardedResolver):
    """Resolver of proxies: that one has no name is no news of a site."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            return await super().resolve(host, port, family)
        except NoSuchHost as error:
            raise OSError(f"the proxy {error}") from error


def _guarded_socket(guard: AddressGuard, info: aiohttp.AddrInfoType) -> socket.socket:
    """Open a socket: the one place for that, so every hop and IP literal is checked."""
    family, kind, protocol, _, address = info
    refusal = guard.refusal(str(address[0]))
    if refusal is not None:
        raise AddressRefused(refusal)
    opened = socket.socket(family, kind, protocol)
    # What one read brings is in memory before anybody can say no: not a quarter of a megabyte.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return opened


def guarded_connector(
    guard: AddressGuard,
    resolver: AbstractResolver,
    tls: ssl.SSLContext | None,
    *,
    force_close: bool = False,
) -> aiohttp.TCPConnector:
    """Return a connector to allowed addresses only, IPv6 and IPv4 raced (RFC 8305).

    Their number is not limited here: politeness is the caller's.
    """
    return aiohttp.TCPConnector(
        resolver=_GuardedResolver(resolver, guard),
        use_dns_cache=False,
        socket_factory=partial(_guarded_socket, guard),
        ssl=tls if tls is not None else True,
        limit=0,
        limit_per_host=0,
        force_close=force_close,
    )


def is_socks(proxy: str) -> bool:
    """Return whether a proxy's URL is one of SOCKS."""
    return proxy.startswith("socks")


@dataclass(frozen=True, slots=True)
class Access:
    """Ways to a site that differ: fields of requests, secret ones; TLS; the URL of a proxy.

    ``public`` is what of it does not tell the site who asks; None: nothing.
    """

    fields: Mapping[str, str]
    cookies: CookieJar | None = None
    tls: ssl.SSLContext | None = None
    proxy: str | None = None
    public: Access | None = None

    def fields_for(self, url: str) -> dict[str, str]:
        """Return the fields of a request for a URL, with the cookies that are for it."""
        found = dict(self.fields)
        if self.cookies is not None:
            wanted = CookieRequest(url)  # noqa: S310 - nothing is opened
            self.cookies.add_cookie_header(wanted)
            if cookie := wanted.get_header("Cookie"):
                found["Cookie"] = cookie
        return found


class Connections:
    """Sessions of aiohttp with the same options, one for each proxy and one without."""

    def __init__(
        self, guard: AddressGuard, resolver: AbstractResolver, tls: ssl.SSLContext | None,
        **options: Any,
    ) -> None:  # fmt: skip
        self._guard, self._resolver, self._options = guard, resolver, options
        connector = guarded_connector(guard, resolver, tls)
        self._direct = aiohttp.ClientSession(connector=connector, **options)
        self._fresh = aiohttp.ClientSession(
            connector=guarded_connector(guard, resolver, tls, force_close=True), **options
        )
        self._proxied: dict[tuple[str, bool], aiohttp.ClientSession] = {}

    def by(
        self, access: Access | None, url: URL, *, is_fresh: bool = False
    ) -> tuple[aiohttp.ClientSession, dict[str, Any]]:
        """Return the session that reaches a URL, and the options of its requests.

        Where no proxy is in between, ``is_fresh`` asks for a connection that none has used.
        """
        options: dict[str, Any] = {}
        if access is not None and access.tls is not None:
            options["ssl"] = access.tls
        if access is None or access.proxy is None:
            return (self._fresh if is_fresh else self._direct), options
        # The proxy looks names up: what may be reached through it is for its owner to say.
        host = url.raw_host or ""
        if is_address(host) and (why := self._guard.refusal(host)) is not None:
            raise Unfetched("address", why)
        relays = not is_socks(access.proxy) and url.scheme == "http"
        if not is_socks(access.proxy):
            options["proxy"] = access.proxy
        key = access.proxy, relays
        if key not in self._proxied:
            connector = self._connector(access.proxy, relays=relays)
            self._proxied[key] = aiohttp.ClientSession(connector=connector, **self._options)
        return self._proxied[key], options

    def _connector(self, proxy: str, *, relays: bool) -> aiohttp.BaseConnector:
        """Return a connector to a proxy, which relays requests or else opens tunnels."""
        if is_socks(proxy):
            from aiohttp_socks import ProxyConnector  # noqa: PLC0415 - an extra

            # "h" and "a" want what is done anyway: the proxy looks names up.
            scheme, _, place = proxy.partition("://")
            return ProxyConnector.from_url(f"{scheme[:6]}://{place}", rdns=True, limit=0)
        # It may stand in a private network: its owner names it.
        anywhere = AddressGuard(allow_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")))
        # A proxy may pass the server's "keep-alive" on, and hang up after that.
        resolver = _ProxyResolver(self._resolver, anywhere)
        return guarded_connector(anywhere, resolver, None, force_close=relays)

    async def close(self) -> None:
        """Close all connections."""
        for session in (self._direct, self._fresh, *self._proxied.values()):
            await session.close()


class Response(aiohttp.ClientResponse):
    """A response that keeps facts that aiohttp forgets when a short body ends with its headers.

    When the server hangs up without an answer, aiohttp would try again at once. That is too soon
    for a polite crawler: where a kept-alive connection had gone stale (RFC 9112, section 9.3.1),
    the reason says so, and the request waits for its turn once more.
    """

    peer: str | None = None
    headers_timeout_s: ClassVar[float]
    _used: ClassVar[WeakSet[object]] = WeakSet()
    #: Connections that wait for another request, the longest idle first.
    _idle: ClassVar[OrderedDict[ResponseHandler, None]]
    _lost: asyncio.Future[None] | None = None
    _handler: ResponseHandler | None = None

    async def start(self, connection: Connection) -> Response:
        """Wait for the headers, which must come within the time-out after the request."""
        protocol = cast(ResponseHandler, connection.protocol)
        is_fresh = protocol not in self._used
        self._used.add(protocol)
        self._lost = protocol.closed
        self._handler = protocol
        if is_fresh and protocol.closed is not None:
            # Its exception counts as retrieved: kept-alive connections may break unnoticed.
            protocol.closed.add_done_callback(lambda lost: lost.cancelled() or lost.exception())
        self.peer = _peer(connection)
        self._idle.pop(protocol, None)
        connection.add_callback(partial(_keep, self._idle, protocol))
        try:
            with _few_interim(protocol):
                async with asyncio.timeout(self.headers_timeout_s):
                    await super().start(connection)
        except TimeoutError as error:
            raise Unfetched("timeout_headers", "the headers did not come in time") from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            reason = "protocol" if is_fresh else "stale"
            raise Unfetched(reason, "the server hung up without a response") from error
        return self

    def hang_up(self) -> None:
        """Close the connection, which may be idle already: a short body ends with its headers."""
        if self._handler is not None:
            self._handler.close()

    @property
    def status_line(self) -> bytes:
        """Return the first line of the response, without its end."""
        version = self.version or aiohttp.HttpVersion11
        line = f"HTTP/{version.major}.{version.minor} {self.status:03} {self.reason or ''}"
        return line.encode("utf-8", "surrogateescape")

    @property
    def come(self) -> bytes | None:
        """Return the body if all of it has come, as a short one does with its headers."""
        body = self.content
        is_whole = body.is_eof() and body.exception() is None and not self.broke_off
        return body.read_nowait() if is_whole else None

    @property
    def broke_off(self) -> bool:
        """Return whether a connection broke whose end was to be that of the body.

        aiohttp itself detects cut bodies of a known length, but not these.
        """
        is_framed = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        lost = self._lost
        return not is_framed and lost is not None and lost.done() and lost.exception() is not None


def response_class(headers_timeout_s: float) -> type[Response]:
    """Return the class of responses whose headers must come within that time."""
    members = {"headers_timeout_s": headers_timeout_s, "_idle": OrderedDict()}
    return type("Response", (Response,), members)


@contextmanager
def _few_interim(protocol: ResponseHandler) -> Iterator[None]:
    """Bound the interim responses that aiohttp reads while it waits for the final one."""
    read, left = protocol.read, iter(range(INTERIM_RESPONSES + 1))

    async def counted() -> tuple[RawResponseMessage, aiohttp.StreamReader]:
        if next(left, None) is None:
            meet("interim responses")
            raise Unfetched("protocol", f"more than {INTERIM_RESPONSES} interim responses")
        return await read()

    protocol.read = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        del protocol.read


def _keep(idle: OrderedDict[ResponseHandler, None], protocol: ResponseHandler) -> None:
    """Note a connection that is idle now, and close the longest idle one beyond the bound."""
    idle[protocol] = None
    if len(idle) > connections():
        idle.popitem(last=False)[0].close()


def _peer(connection: Connection) -> str | None:
    transport = connection.transport
    name = transport.get_extra_info("peername") if transport is not None else None
    return str(name[0]) if name else None


@contextmanager
def own_failures() -> Iterator[None]:
    """Turn the exceptions of aiohttp into :class:`Unfetched`."""
    try:
        yield
    except aiohttp.ClientError as error:
        reason, detail = _explain(error)
        raise Unfetched(reason, detail) from error
    except RuntimeError as error:
        # The word of aiohttp's stream where a connection closed between two reads.
        if str(error) != "Connection closed.":
            raise
        raise Unfetched("cut_short", "the connection closed before the body ended") from error
    except Exception as error:
        # Its errors have no common class, and it is imported where a proxy wants it.
        theirs = type(error).__module__.startswith(("aiohttp_socks.", "python_socks."))
        if not theirs and not isinstance(error, EOFError):
            raise
        said = "it hung up, or speaks another protocol" if not theirs else str(error)
        raise Unfetched("connect", f"by the proxy: {said}") from error


def _explain(error: Exception) -> tuple[str, str]:
    """Return the stable word and the sentence for a foreign exception."""
    match error:
        case aiohttp.ClientProxyConnectionError():
            reason, detail = _explain_connect(error)
            # Nothing is known of the site: not that it has no name, nor no TLS.
            return (reason if reason in _LOCAL.values() else "connect"), f"to the proxy: {detail}"
        case aiohttp.ClientConnectorError():
            return _explain_connect(error)
        case aiohttp.ConnectionTimeoutError():
            return "timeout_connect", "no connection in time"
        case aiohttp.ClientResponseError():
            is_long = isinstance(_root(error), LineTooLong) or "Too many" in error.message
            return ("headers_too_large" if is_long else "protocol"), error.message
        case aiohttp.ClientPayloadError():
            return "cut_short", f"the body ended early: {error}"
        case aiohttp.InvalidURL():
            return "url", f"not a URL that can be fetched: {error}"
        case _:
            return "protocol", str(error) or repr(error)


def _explain_connect(error: aiohttp.ClientConnectorError) -> tuple[str, str]:
    cause = error.os_error
    detail = getattr(cause, "verify_message", "") or cause.strerror or str(cause) or repr(cause)
    match cause:
        case AddressRefused():
            return "address", detail
        case NoSuchHost():
            return "no_such_host", detail
        case ResolverSilent():
            return "no_resolver", detail
        case OSError(errno=code) if code in _LOCAL:
            return _LOCAL[code], detail
        case ssl.SSLError():
            return ("not_tls" if cause.reason in _NOT_TLS else "tls"), detail
        case _:
            found = re.search(r"Errno (\d+)", str(cause))
            reason = "dns" if isinstance(error, aiohttp.ClientConnectorDNSError) else "connect"
            return reason, os.strerror(int(found[1])) if found else detail


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
