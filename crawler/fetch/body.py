"""Reading of a body: minimum speed, memory, and content codings."""

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

#: Bytes after which other tasks get a turn; shorter bodies do not wait for memory.
_TURN_BYTES = 64 * 1024
#: Bytes read ahead on a connection, by the kernel and in this process.
_AHEAD_BYTES = 128 * 1024


class BodyPace:
    """Minimum speed of a body; times are monotonic seconds.

    Invariant: at least ``window_s × min_rate`` bytes arrive in ``window_s``, and then the next
    window begins. Consequence: a server that sends a byte now and then holds a connection for one
    window, not for ever. A rate of 0 sets no minimum.
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
        """Exclude a time in which the body was not read."""
        self._window_ends_at += seconds
        self._ends_at += seconds

    @property
    def deadline(self) -> float:
        """The time by which more bytes, or all of them, must have arrived."""
        return min(self._window_ends_at, self._ends_at)

    def missed(self) -> Unfetched:
        """Return the failure for a missed deadline."""
        if self._ends_at <= self._window_ends_at:
            return Unfetched("timeout_body", "the body did not end in time")
        detail = f"{self._received} bytes in {self._window_s:g} s, fewer than {self._quota:g}"
        return Unfetched("too_slow", detail)


class HeldBytes:
    """Bytes of bodies in memory, by reading task, until the task ends.

    *Invariant.* Beyond ``most``, only short bodies and the task that began first are read on.
    Consequence: any number of concurrent bodies takes the memory of a few, and one of them can
    always finish, provided that ``release`` is called for tasks that wait long.
    """

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._most = most
        self._total = 0
        self._held: dict[asyncio.Task[object] | None, int] = {}
        self._freed = asyncio.Event()
        self._decodes = False

    async def grow(self, size: int, *, waits: bool = True) -> bool:
        """Count more bytes for the current task; return whether it had to wait."""
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
        """Stop counting the bytes of a task, by default of the current one."""
        self._total -= self._held.pop(task or asyncio.current_task(), 0)
        self._freed.set()


async def _hold(held: HeldBytes, size: int, pace: BodyPace, alarm: asyncio.Timeout) -> None:
    """Wait for memory for the received bytes; the deadline is extended by that time."""
    clock = asyncio.get_running_loop().time
    began_at = clock()
    alarm.reschedule(None)
    if await held.grow(size):
        pace.stood_still(clock() - began_at)
    alarm.reschedule(pace.deadline)


class BodyRules(NamedTuple):
    """Rules by which a body is read.

    ``max_bytes`` limits the body on the wire and decoded. With ``may_cut``, a longer decoded body
    is cut there; otherwise it fails. With ``is_sniffed`` it must start like text; ``no_page``
    describes a media type that is not a page's. With ``is_unpacked`` it is also decoded according
    to its first bytes.
    """

    max_bytes: int
    may_cut: bool = False
    is_sniffed: bool = False
    is_unpacked: bool = False
    no_page: str | None = None


def short_body(wire: bytes, content_encoding: str, rules: BodyRules) -> bytes | None:
    """Return the decoded body if it has arrived completely; None if it needs an :class:`Intake`.

    Most bodies are short, and either gzip or not encoded.

    Raises:
        Unfetched: the content coding is not supported.
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
    """Reader of a body in pieces; ``announced_bytes`` of 0 means unknown.

    Raises:
        Unfetched: on construction, if the content coding is not supported.
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
        #: Names of the repairs made.
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
        """Read all chunks, up to the limit; time spent waiting for memory does not count.

        Raises:
            Unfetched: if the body is too slow, too large, not text, or cannot be decoded.
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
                        # Give other tasks a turn after much work.
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
        """Return whether the coding proves that a body that ended early is complete.

        Gzip, deflate, br and zstd mark their end. This counts as a repair.
        """
        is_proof = self._is_encoded and self._is_complete and self._decoded.tell() > 0
        # The coding of a repaired body proves nothing.
        if not is_proof or not {"checksum", "not_encoded"}.isdisjoint(self.repairs):
            return False
        self.repairs.append("length")
        return True

    def _is_enough(self) -> bool:
        """Return whether enough has been read."""
        if self.is_cut or len(self._wire) > self._rules.max_bytes:
            return True
        # Some servers announce the length before compression, with which gzip ends (RFC 1952,
        # section 2.3.1). They keep the connection open, and no more bytes follow.
        announced, ends = self._announced_bytes, int.from_bytes(self._wire[-4:], "little")
        is_gzip = self._wire.startswith(GZIP_MAGIC)
        return is_gzip and len(self._wire) < announced == ends

    async def _decode(self, held: HeldBytes) -> None:
        # A short body does not wait for memory; how long others are shows only after decoding.
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
        """Read a body that has already arrived completely.

        Raises:
            Unfetched: if the body is too large, not text, or cannot be decoded.
        """
        self._take(body)
        deque(self._steps(self._rules.max_bytes) if self._is_encoded else (), 0)
        while self._unpack():
            deque(self._steps(self._rules.max_bytes), 0)
        self._judge()

    def _unpack(self) -> bool:
        """Return whether the body must be decoded once more, according to its first bytes."""
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
        """Take a chunk from the wire; encoded bodies are decoded after the last one."""
        if self._is_encoded:
            self._wire += chunk
        else:
            self.is_cut = len(chunk) > (room := self._rules.max_bytes - self._decoded.tell())
            self._write(chunk[:room])

    def _steps(self, limit: int) -> Iterator[None]:
        """Decode the received bytes, up to the limit; other tasks may run at each step.

        If decoding fails, the body may be gzip or deflate with a wrong or missing checksum, or a
        text or PDF that was encoded fewer times or in another way than its header says.
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
                # Brotli accepts one in ten short gzip bodies as the start of a stream.
                coding, known = self._coding, packed_coding(bytes(self._wire[:4]))
                if known and not (yield from self._trying("other_coding", known, limit)):
                    self._coding, self._is_unchecked = coding, False
                    yield from self._decoding(limit)

    def _mending(self, limit: int) -> Generator[None, None, bool]:
        """Try other codings than the header's; return whether one of them succeeds."""
        codings = self._coding.split(",")
        some = [part for n in range(1, len(codings)) for part in (codings[n:], codings[:n])]
        fewer = [("not_encoded", ",".join(part)) for part in (*some, [])]
        # Gzip and zstd show in the first bytes; the others are accepted if the result is text to
        # the end.
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
        """Return whether a body decoded against its header is complete or of a known format."""
        if self._is_unchecked:
            return self._is_whole()
        if codings_of(self._coding).applied and not self._is_whole():
            return False
        head = bytes(self._decoded.getbuffer()[:SNIFFED_BYTES])
        if head.startswith(first_bytes()) or is_evidently_text(head):
            return True
        # Without a gzip header it is not gzip; then any text will do.
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
        """The body if it is not encoded, else no bytes."""
        return b"" if self._is_encoded else self._decoded.getvalue()

    def result(self) -> tuple[bytes, bytes]:
        """Return the body as received, without chunked framing, and decoded.

        Both are the same object if it is not encoded.

        Raises:
            Unfetched: if the encoded stream is incomplete.
        """
        if not (self._is_complete or self.is_cut):
            raise Unfetched("cut_short", "the encoded body ends before its end")
        decoded = self._decoded.getvalue()
        return bytes(self._wire) if self._is_encoded else decoded, decoded
