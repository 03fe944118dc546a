"""Reading of a body: its pace, its memory, its content codings."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from typing import NamedTuple

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.bounds import HELD_BYTES, meet
from freshet.crawler.fetch.responses import (
    GZIP_MAGIC,
    MAX_LAYERS,
    SNIFFED_BYTES,
    BoundedDecoder,
    begins_as_zlib,
    codings_of,
    gunzip_short,
    is_evidently_text,
    looks_binary,
    packed_coding,
)
from freshet.crawler.reduce.formats import first_bytes, is_mislabelled

#: Bytes after which other tasks get their turn; no body waits for memory before it has so many.
_TURN_BYTES = 64 * 1024
#: Read ahead on a connection, by the kernel's measure and ours.
_AHEAD_BYTES = 128 * 1024


class BodyPace:
    """Minimum speed of a body; times are monotonic seconds.

    Invariant: in ``window_s`` at least ``window_s × min_rate`` bytes arrive, and the next
    window begins when they have. Consequence: a server that sends a byte now and then
    holds a connection for one window, not for ever. A rate of 0 demands nothing.
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
        """Count received bytes."""
        self._received += size
        if self._received >= self._quota:
            self._received = 0
            self._window_ends_at = now + self._window_s

    def stood_still(self, seconds: float) -> None:
        """Forgive a time in which nobody read."""
        self._window_ends_at += seconds
        self._ends_at += seconds

    @property
    def deadline(self) -> float:
        """Return the time by which more must have come, or everything."""
        return min(self._window_ends_at, self._ends_at)

    def missed(self) -> Unfetched:
        """Return the failure that a missed deadline means."""
        if self._ends_at <= self._window_ends_at:
            return Unfetched("timeout_body", "the body did not end in time")
        detail = f"{self._received} bytes in {self._window_s:g} s, fewer than {self._quota:g}"
        return Unfetched("too_slow", detail)


class HeldBytes:
    """Bytes of bodies in memory, by the task that reads them, until that task ends.

    *Invariant.* Beyond ``most`` only bodies that are still short, and the task that began first,
    are read on. Consequence: however many bodies come at once, they take the memory of a few, and
    one of them always comes to its end, if what waits for long is released (``release``).
    """

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._most = most
        self._total = 0
        self._held: dict[asyncio.Task[object] | None, int] = {}
        self._freed = asyncio.Event()
        self._decodes = False

    async def grow(self, size: int, *, waits: bool = True) -> bool:
        """Hold so many bytes more; return whether that had to wait."""
        task = asyncio.current_task()
        if task is not None and task not in self._held:
            self._held[task] = _AHEAD_BYTES
            self._total += _AHEAD_BYTES
            task.add_done_callback(self.release)
        is_long = self._held.get(task, 0) >= _AHEAD_BYTES + _TURN_BYTES
        waited = False
        while waits and is_long and self._is_full(size):
            waited = True
            await self._freed.wait()
        self._held[task] = self._held.get(task, 0) + size
        self._total += size
        return waited

    @asynccontextmanager
    async def decoding(self, *, is_short: bool) -> AsyncIterator[None]:
        """Decode one body at a time: a decoder itself may hold 16 MiB."""
        while self._decodes or (not is_short and self._is_full(0)):
            self._freed.clear()
            await self._freed.wait()
        self._decodes = True
        try:
            yield
        finally:
            self._decodes = False
            self._freed.set()

    def _is_full(self, size: int) -> bool:
        if self._total + size <= self._most or next(iter(self._held)) is asyncio.current_task():
            return False
        meet("bytes of bodies in memory")
        self._freed.clear()
        return True

    def release(self, task: asyncio.Task[object] | None = None) -> None:
        """Count no longer what a task holds; by default the current one."""
        self._total -= self._held.pop(task or asyncio.current_task(), 0)
        self._freed.set()


async def _hold(held: HeldBytes, size: int, pace: BodyPace, alarm: asyncio.Timeout) -> None:
    """Wait until there is memory for what has come; that time does not count."""
    clock = asyncio.get_running_loop().time
    began_at = clock()
    alarm.reschedule(None)
    if await held.grow(size):
        pace.stood_still(clock() - began_at)
    alarm.reschedule(pace.deadline)


class BodyRules(NamedTuple):
    """Rules by which a body is read.

    ``max_bytes`` hold for the wire and for the decoded body. With ``may_cut`` a decoded body
    that is longer ends there, otherwise it fails. With ``is_sniffed`` it must begin like
    text; ``no_page`` says what its label is, if that is not of a page. With ``is_unpacked`` it is
    decoded by its first bytes, too.
    """

    max_bytes: int
    may_cut: bool = False
    is_sniffed: bool = False
    is_unpacked: bool = False
    no_page: str | None = None


def short_body(wire: bytes, content_encoding: str, rules: BodyRules) -> bytes | None:
    """Return the decoded body that has come as a whole; None if it needs an :class:`Intake`.

    Most bodies are short, and gzip or not encoded.

    Raises:
        Unfetched: the content coding is not known.
    """
    codings = codings_of(content_encoding)
    most = min(_TURN_BYTES, rules.max_bytes)
    if len(wire) > most or rules.is_sniffed or codings.has_other_words:
        return None
    text = None if codings.applied else wire
    if codings.is_gzip:
        text = gunzip_short(wire, most)
    is_packed = rules.is_unpacked and text is not None and packed_coding(text) is not None
    return None if is_packed else text


class Intake:
    """Reader of a body, piece by piece; ``announced_bytes`` of 0 are not known.

    Raises:
        Unfetched: on construction, if the content coding is not known.
    """

    def __init__(
        self, content_encoding: str, rules: BodyRules, *, announced_bytes: int = 0
    ) -> None:
        self._encode(content_encoding)
        self._rules = rules
        self._announced_bytes = announced_bytes
        self._wire = bytearray()
        self._decoded = BytesIO()
        self._is_complete = True
        self._is_unchecked = False
        #: True if the server had more to send.
        self.is_cut = False
        #: What was mended, by its name.
        self.repairs = ["coding_words"] if codings_of(content_encoding).has_other_words else []

    def _encode(self, content_encoding: str) -> None:
        codings = codings_of(content_encoding)
        self._coding = content_encoding
        self._is_encoded = bool(codings.applied)
        self._is_light = codings.is_light
        self._is_gzip = codings.is_gzip
        self._has_checksum = codings.is_light and len(codings.applied) == 1

    async def read(
        self, chunks: AsyncIterable[bytes], pace: BodyPace, held: HeldBytes | None = None
    ) -> None:
        """Take all chunks, up to the limit; the time that it waits for memory does not count.

        Raises:
            Unfetched: if the body is too slow, too large, not text, or does not decode.
        """
        clock, taken, held = asyncio.get_running_loop().time, 0, held or HeldBytes()
        is_late = False
        try:
            async with asyncio.timeout_at(pace.deadline) as alarm:
                async for chunk in chunks:
                    pace.received(len(chunk), clock())
                    alarm.reschedule(pace.deadline)
                    self._take(chunk)
                    taken += len(chunk)
                    if taken >= _TURN_BYTES:
                        # Let other tasks run after much work.
                        await asyncio.sleep(0)
                        await _hold(held, taken, pace, alarm)
                        taken = 0
                    if self._is_enough():
                        break
        except TimeoutError:
            is_late = True
        if self._is_encoded:
            await self._decode(held)
        while self._unpack():
            await self._decode(held)
        self._judge()
        if is_late and not self.is_proven_whole():
            raise pace.missed()

    def is_proven_whole(self) -> bool:
        """Return whether the coding proves that a body is whole which ended early.

        Gzip, deflate, br and zstd tell where they end. It counts as a repair.
        """
        is_proof = self._is_encoded and self._is_complete and self._decoded.tell() > 0
        # Repaired, its coding proves nothing.
        if not is_proof or not {"checksum", "not_encoded"}.isdisjoint(self.repairs):
            return False
        self.repairs.append("length")
        return True

    def _is_enough(self) -> bool:
        """Return whether no more need be read."""
        if self.is_cut or len(self._wire) > self._rules.max_bytes:
            return True
        # Some servers announce the length of the page before it was packed, which gzip ends with
        # (RFC 1952, section 2.3.1): they keep the connection, and nothing more comes.
        announced, ends = self._announced_bytes, int.from_bytes(self._wire[-4:], "little")
        is_gzip = self._wire.startswith(GZIP_MAGIC)
        return is_gzip and len(self._wire) < announced == ends

    async def _decode(self, held: HeldBytes) -> None:
        # A short body does not wait for memory, and no other is known before it is decoded.
        limits = [_TURN_BYTES, self._rules.max_bytes]
        if self._is_light and len(self._wire) <= _TURN_BYTES:
            deque(self._steps(min(limits.pop(0), self._rules.max_bytes)), 0)
            limits = limits if self.is_cut else []
        for limit in limits:
            async with held.decoding(is_short=limit <= _TURN_BYTES):
                for _ in self._steps(min(limit, self._rules.max_bytes)):
                    await asyncio.sleep(0)
                if limit > _TURN_BYTES:
                    await held.grow(self._decoded.tell(), waits=False)
            if not self.is_cut:
                break

    def take_whole(self, body: bytes) -> None:
        """Take a body that is complete already.

        Raises:
            Unfetched: if the body is too large, not text, or does not decode.
        """
        self._take(body)
        deque(self._steps(self._rules.max_bytes) if self._is_encoded else (), 0)
        while self._unpack():
            deque(self._steps(self._rules.max_bytes), 0)
        self._judge()

    def _unpack(self) -> bool:
        """Return whether the body is to be decoded once more, by its first bytes."""
        inner = packed_coding(self._decoded.getvalue()) if self._rules.is_unpacked else None
        codings = codings_of(self._coding).applied
        if inner is None or len(codings) == MAX_LAYERS:
            return False
        if not codings:
            self._wire = bytearray(self._decoded.getbuffer())
        self._encode(", ".join((inner, *codings)))
        if "packed" not in self.repairs:
            self.repairs.append("packed")
        return True

    def _take(self, chunk: bytes) -> None:
        """Take a chunk of the wire; what is encoded is decoded once it has all come."""
        if self._is_encoded:
            self._wire += chunk
        else:
            self.is_cut = len(chunk) > (room := self._rules.max_bytes - self._decoded.tell())
            self._write(chunk[:room])

    def _steps(self, limit: int) -> Iterator[None]:
        """Decode what has come, up to the limit; other tasks may run at each step.

        What does not decode as it should may be gzip or deflate whose checksum is wrong or missing,
        a text or PDF that was encoded less often than its header says, or in another way.
        """
        try:
            yield from self._decoding(limit)
        except Unfetched as error:
            if error.reason != "encoding" or not (yield from self._mending(limit)):
                raise
        else:
            if self._has_checksum and not self._is_whole():
                yield from self._trying("checksum", self._coding, limit)
            elif not (self._is_whole() or self._decoded.tell()):
                # To brotli one in ten short bodies of gzip is the beginning of something.
                coding, known = self._coding, packed_coding(bytes(self._wire[:4]))
                if known and not (yield from self._trying("other_coding", known, limit)):
                    self._coding, self._is_unchecked = coding, False
                    yield from self._decoding(limit)

    def _mending(self, limit: int) -> Generator[None, None, bool]:
        """Decode in other ways than the header says; return whether one of them is right."""
        codings = self._coding.split(",")
        some = [part for n in range(1, len(codings)) for part in (codings[n:], codings[:n])]
        fewer = [("not_encoded", ",".join(part)) for part in (*some, [])]
        # Gzip and zstd are known by their first bytes, the others by what is a text to its end.
        known = packed_coding(bytes(self._wire[:4])) or "deflate"
        other = [("other_coding", each) for each in (known, "br") if each != self._coding]
        for repair, coding in (("checksum", self._coding), *fewer, *other):
            if (yield from self._trying(repair, coding, limit)):
                return True
        return False

    def _trying(self, repair: str, coding: str, limit: int) -> Generator[None, None, bool]:
        self._coding, self._is_unchecked = coding, repair == "checksum"
        with suppress(Unfetched):
            yield from self._decoding(limit)
            if self._is_mended():
                self.repairs.append(repair)
                return True
        return False

    def _is_mended(self) -> bool:
        """Return whether what was decoded against the header is a known format, or a whole."""
        if self._is_unchecked:
            return self._is_whole()
        if codings_of(self._coding).applied and not self._is_whole():
            return False
        head = bytes(self._decoded.getbuffer()[:SNIFFED_BYTES])
        if head.startswith(first_bytes()) or is_evidently_text(head):
            return True
        # What does not begin as gzip is none: a text in any encoding will do.
        is_gzip = not self._is_gzip or self._wire.startswith(GZIP_MAGIC)
        return bool(head) and not (is_gzip or looks_binary(head) or begins_as_zlib(head))

    def _is_whole(self) -> bool:
        return self._is_complete or self.is_cut

    def _decoding(self, limit: int) -> Iterator[None]:
        decoder = BoundedDecoder(self._coding, limit, is_unchecked=self._is_unchecked)
        self._decoded, made = BytesIO(), 0
        for start in range(0, len(self._wire), _TURN_BYTES):
            for piece in decoder.decode(bytes(self._wire[start : start + _TURN_BYTES])):
                self._write(piece)
                made += len(piece)
                if not piece or made >= _TURN_BYTES:
                    made = 0
                    yield
            if decoder.is_overdrawn:
                break
        self._is_complete, self.is_cut = decoder.is_complete, decoder.is_overdrawn

    def _write(self, piece: bytes) -> None:
        is_first = self._rules.is_sniffed and self._decoded.tell() == 0
        if is_first and looks_binary(piece) and not is_mislabelled(piece):
            why = self._rules.no_page or "no content type, and no text"
            raise Unfetched("content_type", why, "skipped")
        self._decoded.write(piece)

    def _judge(self) -> None:
        if self.is_cut and not self._rules.may_cut:
            raise Unfetched("too_large", f"more than {self._rules.max_bytes} bytes")
        if len(self._wire) > self._rules.max_bytes and not self.is_cut:
            raise Unfetched("too_large", f"more than {self._rules.max_bytes} bytes on the wire")

    @property
    def plain(self) -> bytes:
        """Return the body if it is not encoded, else nothing."""
        return b"" if self._is_encoded else self._decoded.getvalue()

    def result(self) -> tuple[bytes, bytes]:
        """Return the body as it came, without chunked framing, and decoded.

        It is the same object twice if it is not encoded.

        Raises:
            Unfetched: if the encoded stream did not come to its end.
        """
        if not (self._is_complete or self.is_cut):
            raise Unfetched("cut_short", "the encoded body ends before its end")
        decoded = self._decoded.getvalue()
        return bytes(self._wire) if self._is_encoded else decoded, decoded
