"""A body as it arrives: decoded, measured, and stopped at its limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterator
from dataclasses import dataclass
from io import BytesIO

from freshet.crawler.network.decoding import BoundedDecoder
from freshet.crawler.network.responses import looks_binary
from freshet.crawler.network.transport import Unfetched
from freshet.storage.words import Outcome

#: Bytes, wire and decoded together, after which other tasks get their turn.
_TURN_BYTES = 256 * 1024


class Pace:
    """How fast a body must come. Pure; times are monotonic seconds.

    Invariant: in ``window_s`` at least ``window_s × min_rate`` bytes arrive, and the next
    window begins when they have. Consequence: a server that sends a byte now and then
    holds a connection for one window, not for ever. A rate of 0 asks for nothing.
    """

    def __init__(
        self, min_rate_bytes_per_s: float, window_s: float, timeout_s: float, now: float
    ) -> None:
        self._quota = min_rate_bytes_per_s * window_s
        self._window_s = window_s if self._quota else timeout_s
        self._received = 0
        self._window_ends_at = now + self._window_s
        self._ends_at = now + timeout_s

    def received(self, size: int, now: float) -> None:
        """Count bytes that have come."""
        self._received += size
        if self._received >= self._quota:
            self._received = 0
            self._window_ends_at = now + self._window_s

    @property
    def deadline(self) -> float:
        """When more must have come, or everything."""
        return min(self._window_ends_at, self._ends_at)

    def missed(self) -> Unfetched:
        """What it means that the deadline has passed."""
        if self._ends_at <= self._window_ends_at:
            return Unfetched("timeout_body", "the body did not end in time")
        detail = f"{self._received} bytes in {self._window_s:g} s, fewer than {self._quota:g}"
        return Unfetched("too_slow", detail)


@dataclass(frozen=True, slots=True)
class Body:
    """``wire`` is as it came, without chunked framing; the same object if not encoded.

    ``is_cut``: the server had more to send.
    """

    wire: bytes
    decoded: bytes
    is_cut: bool = False


class Intake:
    """Takes a body in piece by piece.

    ``max_bytes`` hold for the wire and for the decoded body. With ``is_cut`` a decoded body
    that is longer ends there, otherwise it fails. With ``is_sniffed`` it must begin like
    text.
    """

    def __init__(
        self, content_encoding: str, max_bytes: int, *, is_cut: bool, is_sniffed: bool
    ) -> None:
        self._decoder = BoundedDecoder(content_encoding, max_bytes)
        self._max_bytes = max_bytes
        self._is_cut = is_cut
        self._is_sniffed = is_sniffed
        self._wire = BytesIO()
        self._wire_size = 0
        self._decoded = BytesIO()
        self._until_turn = _TURN_BYTES

    async def read(self, chunks: AsyncIterable[bytes], pace: Pace) -> None:
        """Take all chunks in, or as many as count.

        Raises:
            Unfetched: if the body is too slow, too large, or not text.
            CorruptBody: if it does not decode.
        """
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout_at(pace.deadline) as alarm:
                async for chunk in chunks:
                    pace.received(len(chunk), clock())
                    if alarm.when() != pace.deadline:
                        alarm.reschedule(pace.deadline)
                    await self._take(chunk)
                    if self._decoder.is_overdrawn:
                        return
        except TimeoutError as error:
            raise pace.missed() from error

    async def _take(self, chunk: bytes) -> None:
        for size in self._steps(chunk):
            # Other tasks run when work has been much.
            self._until_turn -= size
            if self._until_turn <= 0:
                self._until_turn = _TURN_BYTES
                await asyncio.sleep(0)

    def take_whole(self, body: bytes) -> None:
        """Take a body in that is there already.

        Raises:
            Unfetched: if the body is too large, or not text.
            CorruptBody: if it does not decode.
        """
        for _ in self._steps(body):
            pass

    def _steps(self, chunk: bytes) -> Iterator[int]:
        """Take a chunk in; after each step, the bytes that it made or took."""
        self._wire_size += len(chunk)
        if not self._decoder.is_identity:
            self._wire.write(chunk)
        yield len(chunk)
        for piece in self._decoder.decode(chunk):
            self._sniff(piece)
            self._decoded.write(piece)
            yield len(piece)
        if self._decoder.is_overdrawn and not self._is_cut:
            raise Unfetched("too_large", f"more than {self._max_bytes} bytes")
        if self._wire_size > self._max_bytes and not self._decoder.is_overdrawn:
            raise Unfetched("too_large", f"more than {self._max_bytes} bytes on the wire")

    def _sniff(self, piece: bytes) -> None:
        if self._is_sniffed and self._decoded.tell() == 0 and looks_binary(piece):
            raise Unfetched("content_type", "no content type, and no text", Outcome.SKIPPED)

    def result(self) -> Body:
        """The whole body.

        Raises:
            Unfetched: if the encoded stream did not come to its end.
        """
        if not (self._decoder.is_complete or self._decoder.is_overdrawn):
            raise Unfetched("cut_short", "the encoded body ends before its end")
        decoded = self._decoded.getvalue()
        wire = decoded if self._decoder.is_identity else self._wire.getvalue()
        return Body(wire, decoded, self._decoder.is_overdrawn)
