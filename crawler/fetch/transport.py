"""The boundary to aiohttp: guarded connections, content codings, translated exceptions."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import ClassVar, cast
from weakref import WeakSet

import aiohttp
import brotli
import zstandard
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_parser import RawResponseMessage

from freshet.crawler.bounds import GZIP_MEMBERS, INTERIM_RESPONSES, RECEIVE_BYTES, connections, meet
from freshet.crawler.fetch.addresses import AddressGuard, NoSuchHost, ResolverSilent
from freshet.storage.entries import Outcome

# -- decoding ----------------------------------------------------------------
# RFC 9110, section 8.4.1. A compressed body is a program that writes memory: 66 kB of zstd can
# stand for 8 GB. So no step here makes more than a few MiB, and the total has a hard limit, between
# two layers as well as for the output.

#: Decoded bytes in one step of gzip, deflate and brotli (brotli may go over it by half).
_STEP_BYTES = 65_536
#: Encoded bytes per step of zstd, which has no limit of its own: a block of
#: four bytes makes 128 KiB, so a step makes 4 MiB at most.
_ZSTD_STEP_BYTES = 128
#: The window that encoders must not exceed, 8 MiB (RFC 9659, section 3).
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
GZIP_MAGIC = b"\x1f\x8b"
#: ``wbits`` of zlib for the three formats that it reads.
_GZIP, _ZLIB, _RAW = 31, 15, -15
_MAX_LAYERS = 2


class Unfetched(Exception):
    """No usable body came; the word and the message say why."""

    def __init__(self, reason: str, detail: str, outcome: Outcome = "failed") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.outcome = outcome


def _inflate(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Yield all output of a zlib stream for the data; behind its end see ``unused_data``."""
    piece = stream.decompress(data, _STEP_BYTES)
    while piece:
        yield piece
        # With an empty tail there may still be output that had no room.
        piece = stream.decompress(stream.unconsumed_tail, _STEP_BYTES)


class Gzip:
    """Members one after the other (RFC 1952, section 2.2); anything after them is ignored."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._held = b""
        self._in_garbage = False
        self._members = 1

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield what the next bytes stand for, at most 64 KiB at once; raises zlib.error."""
        while data and not self._in_garbage:
            if self._member.eof:
                data = self._held + data
                if not self._begins_member(data):
                    return
            yield from _inflate(self._member, data)
            data = self._member.unused_data

    def _begins_member(self, data: bytes) -> bool:
        begins = data.startswith(GZIP_MAGIC)
        self._held = data if data == GZIP_MAGIC[:1] else b""
        self._in_garbage = not begins and not self._held
        if begins:
            self._member = zlib.decompressobj(_GZIP)
            self._members += 1
            if self._members > GZIP_MEMBERS:
                meet("members of a gzip stream")
                raise zlib.error(f"more than {GZIP_MEMBERS:,} members")
        return begins

    @property
    def is_complete(self) -> bool:
        """Return whether the last member has ended."""
        return self._member.eof


class _Deflate:
    """The zlib format (RFC 1950), or bare deflate (RFC 1951), which some servers send."""

    def __init__(self) -> None:
        self._held = b""
        self._stream: zlib._Decompress | None = None

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            self._held += data
            if len(self._held) < 2:
                return
            data = self._held
            is_zlib = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(_ZLIB if is_zlib else _RAW)
        if not self._stream.eof:
            yield from _inflate(self._stream, data)

    @property
    def is_complete(self) -> bool:
        return self._stream is not None and self._stream.eof


class _Brotli:
    """RFC 7932."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def decode(self, data: bytes) -> Iterator[bytes]:
        # can_accept_more_data() turns true while output still waits, so drain it all.
        piece: bytes = self._stream.process(data, output_buffer_limit=_STEP_BYTES)
        while piece:
            yield piece
            piece = self._stream.process(b"", output_buffer_limit=_STEP_BYTES)

    @property
    def is_complete(self) -> bool:
        return bool(self._stream.is_finished())


class _Zstd:
    """Frames one after the other (RFC 8878, section 3.1)."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame = self._decompressor.decompressobj()

    def decode(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP_BYTES):
            rest = data[start : start + _ZSTD_STEP_BYTES]
            while rest:
                if self._frame.eof:
                    self._frame = self._decompressor.decompressobj()
                yield self._frame.decompress(rest)
                rest = self._frame.unused_data

    @property
    def is_complete(self) -> bool:
        return self._frame.eof


_LAYERS: Mapping[str, type[Gzip | _Deflate | _Brotli | _Zstd]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


class BoundedDecoder:
    """Decoder of the codings of one body, ``max_bytes`` at most.

    Feed the wire's bytes with :meth:`decode` in any pieces. When
    ``is_overdrawn``, there was more than ``max_bytes`` (of the body, or between two
    layers): stop. ``is_identity`` says that there is no coding.

    Raises:
        Unfetched: on construction, for a coding other than gzip, deflate, br and zstd, and
            for more than two.
    """

    def __init__(self, content_encoding: str, max_bytes: int) -> None:
        names = _codings(content_encoding)
        self.is_identity = not names
        self._layers = [_LAYERS[name]() for name in names]
        #: The bytes that may still leave each layer.
        self._left = [max_bytes] * max(1, len(names))
        self._is_empty = True
        self.is_overdrawn = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Decode the next bytes from the wire in bounded steps.

        Raises:
            Unfetched: if the bytes do not decode; the iteration cannot go on.
        """
        self._is_empty = self._is_empty and not data
        pieces: Iterable[bytes] = (data,)
        for number in range(len(self._left)):
            pieces = self._granted(number, pieces)
        try:
            yield from pieces
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise Unfetched("encoding", _in_a_line(str(error))) from error

    def _granted(self, number: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what a layer makes, up to the limit, and nothing where it has taken a piece."""
        for taken in pieces:
            layer = (taken,) if self.is_identity else self._layers[number].decode(taken)
            for piece in chain(layer, (b"",)):
                granted = piece[: self._left[number]]
                self._left[number] -= len(granted)
                yield granted
                if len(granted) < len(piece):
                    self.is_overdrawn = True
                    return

    @property
    def is_complete(self) -> bool:
        """Return whether the body may end here. An empty one may, whatever its coding."""
        return self._is_empty or all(layer.is_complete for layer in self._layers)


def _codings(content_encoding: str) -> list[str]:
    """Return the codings of a Content-Encoding value in the order of decoding."""
    names = [name.strip().lower() for name in content_encoding.split(",")]
    applied = [name for name in names if name not in ("", "identity")]
    unknown = [name for name in applied if name not in _LAYERS]
    if unknown:
        raise Unfetched("encoding", f"content coding {unknown[0][:50]!r} is not supported")
    if len(applied) > _MAX_LAYERS:
        raise Unfetched("encoding", f"{len(applied)} content codings on top of each other")
    return applied[::-1]


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
    guard: AddressGuard, resolver: AbstractResolver, tls: ssl.SSLContext | None
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
    )


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

    async def start(self, connection: Connection) -> Response:
        """Wait for the headers, which must come within the time-out after the request."""
        protocol = cast(ResponseHandler, connection.protocol)
        is_fresh = protocol not in self._used
        self._used.add(protocol)
        self._lost = protocol.closed
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
        raise Unfetched(reason, _in_a_line(detail)) from error
    except RuntimeError as error:
        # The word of aiohttp's stream where a connection closed between two reads.
        if str(error) != "Connection closed.":
            raise
        raise Unfetched("cut_short", "the connection closed before the body ended") from error


def _in_a_line(detail: str) -> str:
    return " ".join(detail.split())[:300]


def _explain(error: Exception) -> tuple[str, str]:
    """Return the stable word and the sentence for a foreign exception."""
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
