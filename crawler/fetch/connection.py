"""One connection to a server or proxy: the sent request, and the received head and body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, NamedTuple, cast

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.bounds import INTERIM_RESPONSES, meet
from freshet.crawler.fetch.heads import Chunks, ResponseHead, head_end, read_head

#: Bytes of a body that are read ahead; more bytes stay in the kernel.
_AHEAD_BYTES: Final = 32 * 1024


class HeadLimits(NamedTuple):
    """Limits of heads. ``timeout_s`` counts from the request to the end of the head."""

    timeout_s: float
    max_bytes: int = 65_536
    max_headers: int = 1000


def field_bytes(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return request header fields as sent.

    Raises:
        ValueError: a field has a line break.
    """
    lines = [f"{name}: {value}\r\n" for name, value in fields]
    text, ends = "".join(lines), len(lines)
    if text.count("\r") != ends or text.count("\n") != ends or "\0" in text:
        raise ValueError("a line break in a field of a request")
    return text.encode()


def request_bytes(method: str, target: str, fields: bytes, body: bytes = b"") -> bytes:
    """Return a request as sent; ``fields`` are encoded already.

    Raises:
        ValueError: the target has a line break.
    """
    if "\r" in target or "\n" in target or "\0" in target:
        raise ValueError("a line break in the target of a request")
    return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (method.encode(), target.encode(), fields, body)


class _Incoming:
    """A response in progress: bytes of its head, and unread pieces of its body."""

    __slots__ = (
        "chunks", "head", "held_bytes", "interim", "is_paused", "pieces", "received_bytes"
    )  # fmt: skip

    def __init__(self) -> None:
        self.head = b""
        #: Interim responses before the final one.
        self.interim = 0
        self.chunks: Chunks | None = None
        self.pieces: list[bytes] = []
        self.held_bytes = self.received_bytes = 0
        #: Whether the transport is paused until the held bytes are read.
        self.is_paused = False


def _do_nothing() -> None:
    pass


class _HeadAlarm:
    """Calls back when a head is late; one timer serves many exchanges."""

    __slots__ = ("_deadline", "_late", "_loop", "_timer")

    def __init__(self, late: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._late = late
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def set(self, timeout_s: float) -> None:
        """Call back after these seconds, unless the head has arrived by then."""
        self._deadline = self._loop.time() + timeout_s
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look)

    def cancel(self) -> None:
        """Stop the timer, and drop the reference to the connection."""
        self._late = _do_nothing
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look)
        else:
            self._late()


class HttpConnection(asyncio.BufferedProtocol):
    """A connection, with the exchange in progress on it.

    Exchanges are sequential: :meth:`ask`, then the body, then ``is_reusable`` is whether another
    may follow. ``on_lost`` is called once, when the connection has ended. All connections of a loop
    may share the ``buffer``.
    """

    def __init__(
        self, limits: HeadLimits, buffer: memoryview, on_lost: Callable[[HttpConnection], None]
    ) -> None:
        self._limits = limits
        self._buffer = buffer
        self._on_lost = on_lost
        self._new_waiter = asyncio.get_running_loop().create_future
        self._waiter: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        #: Bytes received before the first request.
        self.early = b""
        self.peer: str | None = None
        #: Number of exchanges started.
        self.exchanges = 0
        self._alarm = _HeadAlarm(self._late)
        self._is_lost = False
        self._begin()
        # No response is due before the first exchange.
        self.is_ended = True

    def _begin(self) -> None:
        self.head: ResponseHead | None = None
        #: The head as received.
        self.head_bytes = b""
        #: Whether the body is complete.
        self.is_ended = False
        #: Why a body ended early, and whether the server closed the connection in an orderly way.
        self.cut: str | None = None
        self.is_orderly = False
        self.repairs: list[str] = []
        self._error: Unfetched | None = None
        self._incoming = _Incoming()
        self._is_spoilt = False

    async def ask(self, request: bytes) -> ResponseHead:
        """Send a request, and return the head of the response.

        Raises:
            Unfetched: the head did not arrive in time, or is invalid.
        """
        self.exchanges += 1
        self._begin()
        if self._transport is None or self._is_lost:
            raise self._hung_up()
        self._transport.write(request)
        if self.early:
            early, self.early = self.early, b""
            self._received_data(early)
        self._alarm.set(self._limits.timeout_s)
        while self.head is None:
            if self._error is not None:
                raise self._take_error()
            self._waiter = self._new_waiter()
            await self._waiter
        if self.head.status == 408 and self.exchanges > 1:
            # It refers to the idle time of the connection (RFC 9110, section 15.5.9).
            raise Unfetched("stale", "the server answered 408 on a connection that was kept")
        return self.head

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces, without framing; then ``cut`` is set if it ended early.

        Raises:
            Unfetched: it is damaged.
        """
        while True:
            if self._incoming.pieces:
                yield self.take()
            elif self._error is not None:
                raise self._take_error()
            elif self.is_ended or self.cut is not None:
                return
            else:
                self._waiter = self._new_waiter()
                await self._waiter

    def take(self) -> bytes:
        """Return the received and unread bytes of the body."""
        body = self._incoming
        if not body.pieces:
            return b""
        pieces, body.pieces, body.held_bytes = body.pieces, [], 0
        if body.is_paused and self._transport is not None and not self._is_lost:
            body.is_paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def peek(self) -> bytes:
        """Return the received and unread bytes of the body, and keep them."""
        body = self._incoming
        if len(body.pieces) > 1:
            body.pieces = [b"".join(body.pieces)]
        return body.pieces[0] if body.pieces else b""

    @property
    def is_reusable(self) -> bool:
        """True if the connection may serve another exchange."""
        is_whole = self.is_ended and self.cut is None
        is_kept = self.head is not None and self.head.is_kept
        return is_whole and is_kept and not (self._is_lost or self._is_spoilt or self.repairs)

    def close(self) -> None:
        """Close the connection, immediately if an exchange is in progress."""
        self._is_spoilt = True
        if self._transport is not None:
            (self._transport.close if self.is_ended else self._transport.abort)()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Unfetched) -> None:
        self._error = self._error or error
        self._is_spoilt = True
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _take_error(self) -> Unfetched:
        """Return the error and drop it: its traceback would keep the received data alive."""
        error, self._error = self._error, None
        return error or self._hung_up()

    def _late(self) -> None:
        """Fail if there is no head yet."""
        if self.head is None and not (self.is_ended or self._is_lost):
            self._fail(Unfetched("timeout_headers", "the headers did not come in time"))

    def _hung_up(self) -> Unfetched:
        """Return the failure for a missing response.

        A kept-alive connection may be stale (RFC 9112, section 9.3.1), which the reason shows. The
        request is repeated later.
        """
        if self.exchanges > 1:
            return Unfetched("stale", "the server hung up on a connection that was kept")
        if self._incoming.head or self._incoming.interim:
            return Unfetched("cut_short", "the server hung up before the end of the head")
        return Unfetched("hung_up", "the server hung up without a response")

    # -- called by the transport ---------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self.peer = str(name[0]) if name else None

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return the shared buffer, which is read right after each write."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes that the transport has written."""
        self._received_data(bytes(self._buffer[:nbytes]))

    def _received_data(self, data: bytes) -> None:
        """Process bytes of the response, or unexpected bytes."""
        try:
            if self.head is None and not self.is_ended:
                data = self._take_head(data)
            if data:
                self._take_body(data)
        except Unfetched as error:
            self._fail(error)
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Record how the exchange in progress ends."""
        self._is_lost = True
        self._alarm.cancel()
        if not self.is_ended:
            if self.head is None:
                self._error = self._error or self._hung_up()
            elif self.head.framing == "close" and exc is None:
                self.is_ended = True
            else:
                self.is_orderly = exc is None
                self.cut = self._how_it_was_cut(exc)
        self._wake()
        self._on_lost(self)

    def _how_it_was_cut(self, exc: Exception | None) -> str:
        how = "closed" if exc is None else "was reset"
        if self.head is not None and self.head.framing == "length":
            arrived = f"{self._incoming.received_bytes:,} of {self.head.length:,} bytes"
            return f"the connection {how} after {arrived} of the body"
        return f"the connection {how} before the end of the body"

    # -- the response --------------------------------------------------------------

    def _take_head(self, data: bytes) -> bytes:
        """Process bytes of the head, and return those behind it."""
        # Skip an empty line left by the previous response (RFC 9112, section 2.2).
        incoming, limits, searched = self._incoming, self._limits, 0
        if incoming.head:
            searched = max(0, len(incoming.head) - 3)
            data = incoming.head + data
        else:
            data = data.lstrip(b"\r\n")
        while True:
            if not data.startswith(b"HTTP/"):
                self._check_start(data)
            end = head_end(data, searched)
            if (end if end >= 0 else len(data)) > limits.max_bytes:
                most = limits.max_bytes
                raise Unfetched("headers_too_large", f"the head has more than {most:,} bytes")
            if end < 0:
                incoming.head = data
                return b""
            self.head_bytes = data[:end]
            head = read_head(self.head_bytes, limits.max_headers)
            if head.status >= 200 or head.status == 101:
                self._begin_body(head)
                return data[end:]
            incoming.interim += 1
            if incoming.interim > INTERIM_RESPONSES:
                meet("interim responses")
                raise Unfetched("protocol", f"more than {INTERIM_RESPONSES} interim responses")
            data, searched = data[end:].lstrip(b"\r\n"), 0

    def _check_start(self, data: bytes) -> None:
        """Raise an error for data that is not a response.

        On a kept-alive connection it is the rest of the previous response, a body where none is
        allowed.
        """
        if not b"HTTP/".startswith(data[:5].upper()):
            reason = "stale" if self.exchanges > 1 else "protocol"
            raise Unfetched(reason, f"not a response of HTTP/1: {data[:50]!r}")

    def _begin_body(self, head: ResponseHead) -> None:
        self.head = head
        self._incoming.head = b""
        if head.repairs:
            self.repairs.extend(head.repairs)
        if head.framing == "none" or (head.framing == "length" and not head.length):
            self.is_ended = True
        elif head.framing == "chunked":
            self._incoming.chunks = Chunks(self._limits.max_bytes)

    def _take_body(self, data: bytes) -> None:
        """Process bytes of the body."""
        if self.is_ended or self.head is None:
            self._refuse()
            return
        body, rest = self._incoming, b""
        if body.chunks is not None:
            pieces, rest = body.chunks.feed(data)
            self.is_ended = body.chunks.is_ended
            size = sum(map(len, pieces))
            body.pieces += pieces
        else:
            size = len(data)
            if self.head.framing == "length":
                left = self.head.length - body.received_bytes
                if size > left:
                    data, rest, size = data[:left], data[left:], left
                self.is_ended = size == left
            body.pieces.append(data)
        body.held_bytes += size
        body.received_bytes += size
        if rest:
            self._refuse()
        elif body.held_bytes >= _AHEAD_BYTES and not self.is_ended and self._transport is not None:
            body.is_paused = True
            self._transport.pause_reading()

    def _refuse(self) -> None:
        """Drop bytes that belong to no response, and close the connection."""
        if self.head is not None and self.head.framing == "none" and not self._is_spoilt:
            self.repairs.append("no_content")
        self._is_spoilt = True
        if self._transport is not None:
            self._transport.close()
