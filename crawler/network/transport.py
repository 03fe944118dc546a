"""The boundary to aiohttp: guarded connections, and foreign exceptions made ours."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import ClassVar
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.http_exceptions import LineTooLong

from freshet.crawler.network.addresses import AddressGuard
from freshet.crawler.network.decoding import CorruptBody, UnsupportedCoding
from freshet.crawler.network.resolver import NoSuchHost
from freshet.storage.words import Outcome

#: What OpenSSL says when the peer speaks something else, plain HTTP for one.
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"}
)


class Unfetched(Exception):
    """The exchange brought no body that counts, and this is why."""

    def __init__(self, reason: str, detail: str, outcome: Outcome = Outcome.FAILED) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.outcome = outcome


class AddressRefused(OSError):
    """The address guard does not let a connection be opened."""


class _GuardedResolver(AbstractResolver):
    """Drops the addresses that would be refused.

    So a name with a good and a refused address is reached at the good one, and the error
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
        """Nothing: the resolver belongs to whoever made it."""


def _guarded_socket(guard: AddressGuard, info: aiohttp.AddrInfoType) -> socket.socket:
    """The one place where sockets are opened: every hop, IP literals included."""
    family, kind, protocol, _, address = info
    refusal = guard.refusal(str(address[0]))
    if refusal is not None:
        raise AddressRefused(refusal)
    return socket.socket(family, kind, protocol)


def guarded_connector(
    guard: AddressGuard, resolver: AbstractResolver, tls: ssl.SSLContext | None
) -> aiohttp.TCPConnector:
    """Connections to allowed addresses only, IPv6 and IPv4 raced (RFC 8305).

    Their number is not limited here: politeness is the caller's.
    """
    return aiohttp.TCPConnector(
        resolver=_GuardedResolver(resolver, guard),
        use_dns_cache=False,
        socket_factory=partial(_guarded_socket, guard),
        ssl=tls if tls is not None else True,
        limit=0,
        limit_per_host=0,
    )


class Response(aiohttp.ClientResponse):
    """A response that keeps what aiohttp forgets when a short body ends with its headers.

    On a fresh connection aiohttp would ask again at once when the server hangs up without
    an answer. That is one request too many for a polite crawler, so it may do so only where
    a kept-alive connection had gone stale (RFC 9112, section 9.3.1).
    """

    peer: str | None = None
    headers_timeout_s: ClassVar[float]
    _used: ClassVar[WeakSet[object]] = WeakSet()
    _lost: asyncio.Future[None] | None = None

    async def start(self, connection: Connection) -> Response:
        """Wait for the headers, which must come within the time-out after the request."""
        protocol = connection.protocol
        is_fresh = protocol not in self._used
        if protocol is not None and is_fresh:
            self._used.add(protocol)
            if protocol.closed is not None:
                protocol.closed.add_done_callback(_retrieve)
        self._lost = protocol.closed if protocol is not None else None
        self.peer = _peer(connection)
        try:
            async with asyncio.timeout(self.headers_timeout_s):
                await super().start(connection)
        except TimeoutError as error:
            raise Unfetched("timeout_headers", "the headers did not come in time") from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if is_fresh:
                raise Unfetched("protocol", "the server hung up without a response") from error
            raise
        return self

    @property
    def status_line(self) -> bytes:
        """The first line of the response, without its end."""
        version = self.version or aiohttp.HttpVersion11
        line = f"HTTP/{version.major}.{version.minor} {self.status:03} {self.reason or ''}"
        return line.encode("utf-8", "surrogateescape")

    @property
    def come(self) -> bytes | None:
        """The body where all of it has come already, as a short one does with its headers."""
        body = self.content
        is_whole = body.is_eof() and body.exception() is None and not self.broke_off
        return body.read_nowait() if is_whole else None

    @property
    def broke_off(self) -> bool:
        """Whether a body whose end is that of the connection ended by its breaking instead.

        aiohttp tells bodies of a known length from cut ones itself, but not these.
        """
        is_framed = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        lost = self._lost
        return not is_framed and lost is not None and lost.done() and lost.exception() is not None


def response_class(headers_timeout_s: float) -> type[Response]:
    """The class of the responses whose headers must come within that time."""
    return type("Response", (Response,), {"headers_timeout_s": headers_timeout_s})


def _retrieve(lost: asyncio.Future[None]) -> None:
    """Tell asyncio that somebody has looked: kept-alive connections may break unnoticed."""
    if not lost.cancelled():
        lost.exception()


def _peer(connection: Connection) -> str | None:
    transport = connection.transport
    name = transport.get_extra_info("peername") if transport is not None else None
    return str(name[0]) if name else None


@contextmanager
def own_failures() -> Iterator[None]:
    """Turn what aiohttp and the decoders raise into :class:`Unfetched`; let the rest pass."""
    try:
        yield
    except (aiohttp.ClientError, CorruptBody, UnsupportedCoding) as error:
        reason, detail = _explain(error)
        raise Unfetched(reason, " ".join(detail.split())[:300]) from error


def _explain(error: Exception) -> tuple[str, str]:
    """The stable word and the sentence for a foreign exception."""
    match error:
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
        case CorruptBody() | UnsupportedCoding():
            return "encoding", str(error)
        case _:
            return "protocol", str(error) or repr(error)


def _explain_connect(error: aiohttp.ClientConnectorError) -> tuple[str, str]:
    cause = error.os_error
    detail = cause.strerror or str(cause) or repr(cause)
    match cause:
        case AddressRefused():
            return "address", detail
        case NoSuchHost():
            return "no_such_host", detail
        case ssl.SSLError():
            return ("not_tls" if cause.reason in _NOT_TLS else "tls"), detail
        case _:
            is_lookup = isinstance(error, aiohttp.ClientConnectorDNSError)
            return ("dns" if is_lookup else "connect"), detail


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
