"""A parser that never stops the event loop.

Invariant: the work in the event loop's process is bounded by counts that no arrangement
of bytes evades (:func:`crawler.reduce.nesting.is_calm`). Consequence: any other body costs one
process, which the kernel kills at its limit of processor time (the same on a busy machine and on an
idle one) or memory: the page is unparsable, and no small page has waited. What takes longer than a
tenth of the limit waits behind other slow pages and begins again in a fresh process, as do the
later pages of that host; so does a page for which a process that has read others lacks memory.
Consequence: any other page waits for one slow page at most, and whether a page can be read does not
depend on those before it. A page that is only large, by
those counts, waits for none: while the process is busy, a second one with less memory takes it. Any
other end of a process is the crawler's failure, not the page's: :class:`ParserLost`.
"""

import asyncio
import contextlib
import json
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from freshet.crawler.errors import ParserLost
from freshet.crawler.fetch.bounds import SLOW_BYTES, LruCache, meet
from freshet.crawler.frontier.clock import Turns
from freshet.crawler.reduce.blocks import TEXT_VERSION, Blocks
from freshet.crawler.reduce.formats import MODULES, format_of
from freshet.crawler.reduce.page import ParsedPage, Side, beginning, parse, selector_of, standing
from freshet.crawler.reduce.sitemaps import Feed, read_feed
from freshet.crawler.reduce.tree import NO_HINTS, SelectorHints, TreeLimits, is_calm
from freshet.crawler.urls import origin
from freshet.storage.records import Links

if TYPE_CHECKING:
    from freshet.crawler.reduce.channels import Channels
    from freshet.crawler.reduce.document import Document
    from freshet.crawler.reduce.offers import Offers

Result = TypeVar("Result")

#: Address space of pages in the first process and in the second, beyond the process with its
#: modules, so that all processes stay below 400 MB. 10 MiB of running text take
#: 90 MB of it, 5 MiB of links 140 MB, 3 MiB of short table cells 170 MB; a megabyte of
#: documentation takes 24 MB, and its document 40 MB.
_FIRST_LIMIT_BYTES: Final = 180 << 20
_SECOND_LIMIT_BYTES: Final = 44 << 20
#: Modules that a process loads before its memory is limited; a call may add others.
_MODULES: Final = ("freshet.crawler.reduce.page", "freshet.crawler.reduce.sitemaps", *MODULES)
#: Bounds on a body for the second process: its length, and its work in units of a calm body's.
_SECOND_BYTES: Final = 2 << 20
_SECOND_TIMES: Final = 2
#: Digests of a document are made in the event loop's thread if a body is this many times shorter.
#: They take up to four times as long as the text, but the tree and the choice are mostly at hand;
#: the slowest generated body of 128 KiB took 0.2 s.
_DOCUMENT_TIMES: Final = 8
#: Deeper trees are refused: 20,000 levels take Lexbor 0.4 s, 100,000 more than 30 s.
_DEEPEST: Final = 20_000
#: Share of the time limit for a first try, and hosts that are remembered to need more.
_QUICK: Final = 0.1
_SLOW_HOSTS: Final = 1_024
#: Of a page that cannot be parsed, the share of the time limit for its beginning, and the bytes
#: that Lexbor may take for the tree of that: 50,000 links in list items take 46 MB, and 1 s.
_BEGINNING: Final = 0.4
_BEGINNING_BYTES: Final = 64 << 20
#: What a page counts at least of the bytes of slow pages that wait.
_LEAST_SLOW_BYTES: Final = 1 << 20
#: A process that holds more than this after an answer is ended to free the memory.
_RETIRE_BYTES: Final = 128 << 20
#: Signals by which the page itself ends the process.
_CRASHES: Final = frozenset(
    {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL}
)
_PIPE_BYTES: Final = 1 << 20
#: Import path of the process, whether this package is installed or not.
_ROOT: Final = Path(__file__).parents[3]
#: Fields of an answer with columns.
_COLUMNS: Final[Mapping[str, Callable[..., object]]] = {"links": Links, "blocks": Blocks}


@dataclass(frozen=True, slots=True)
class Unparsable:
    """A body that could not be parsed, with the reason in a sentence.

    ``is_lack``: of memory or time in the parser's process; with more of it, it may be a page.
    ``beginning`` is the page without its text, as far as it could be read.
    """

    reason: str
    is_lack: bool = False
    beginning: ParsedPage | None = None


class Parser:
    """Parser of pages, feeds and documents; the owner calls :meth:`close`.

    ``inline_bytes`` bounds a body that is parsed in the event loop's process, where 512 KiB
    cost 30 ms, and 150 ms at the very worst; ``time_limit_s`` is the processor time for any
    other body, ``wall_limit_s`` the longest wait for an answer (None: no limit). Of two
    ``processes`` the second one is started when the first one is busy. ``set_aside`` is
    called by the task of a page that waits as a slow one. The rest is for
    :func:`freshet.crawler.reduce.page.parse`, ``hints`` by URL, as is the attribute ``requisites``.
    """

    def __init__(
        self,
        *,
        time_limit_s: float = 5.0,
        wall_limit_s: float | None = 60.0,
        processes: Literal[1, 2] = 2,
        inline_bytes: int = 512 * 1024,
        max_links: int = 50_000,
        agent_token: str = "freshet",
        hints: Callable[..., SelectorHints] = lambda *_: NO_HINTS,
        set_aside: Callable[[], None] | None = None,
    ) -> None:
        self._inline_bytes = inline_bytes
        self._max_links = max_links
        self._agent_token = agent_token
        self.hints = hints
        self.requisites = False
        self._set_aside = set_aside
        self.time_limit_s = time_limit_s
        self._quick_s = _QUICK * time_limit_s
        self._first = _Worker(wall_limit_s, _FIRST_LIMIT_BYTES)
        self._second = _Worker(wall_limit_s, _SECOND_LIMIT_BYTES) if processes == 2 else None
        self._turns = Turns()
        self._slow_turn = asyncio.Lock()
        self._slow_bytes = 0
        self._slow_hosts = LruCache[str, bool](_SLOW_HOSTS)

    def text_version(self, url: str, content_type: str | None = None) -> str:
        """Name the extraction that takes the main text of a page from its bytes.

        Texts of different names are not compared.
        """
        if version := format_of(content_type).version:
            return f"{TEXT_VERSION}+{version}"
        hints = self.hints(url)
        if hints == NO_HINTS:
            return TEXT_VERSION
        selectors = repr((hints.include, hints.ignore)).encode()
        return f"{TEXT_VERSION}+{blake2b(selectors, digest_size=6).hexdigest()}"

    async def parse(
        self, body: bytes, url: str, content_type: str | None, hints: SelectorHints | None = None
    ) -> ParsedPage | Unparsable:
        """Parse as :func:`freshet.crawler.reduce.page.parse`; an unparsable page is a value.

        ``hints`` take the place of the site's.

        All methods raise :class:`ParserLost` where the parser's process failed, not the page.
        """
        most = format_of(content_type).most_inline
        is_bounded = len(body) <= self._inline_bytes and (most is None or len(body) <= most)
        inline = is_bounded and is_calm(body)
        read = partial(
            parse,
            agent_token=self._agent_token,
            max_links=self._max_links,
            hints=hints or self.hints(url),
            deepest=None if inline else _DEEPEST,
            requisites=self.requisites,
        )
        if not inline:
            # Only that process bounds the memory of formats that are always read there.
            second = self._second_for(body) if most != 0 else None
            return await self._parse_apart(read, body, url, content_type, second=second)
        await self._turns.take()
        try:
            return read(body, url, content_type)
        except Exception as error:  # noqa: BLE001  # one odd page must not end the crawl
            return Unparsable(f"{type(error).__name__}: {error}"[:200])

    async def _parse_apart(
        self,
        read: Callable[[bytes, str, str | None], ParsedPage],
        body: bytes,
        url: str,
        content_type: str | None,
        *,
        second: "_Worker | None",
    ) -> ParsedPage | Unparsable:
        """Parse in the ``second`` process if one is given, in the first if that fails."""
        call = partial(_apart, read, body, url, content_type)
        if second is not None:
            with contextlib.suppress(_OutOfTime):
                found = await second.call(ParsedPage, call, self._quick_s)
                # With the memory of the first one it may be a page.
                if not isinstance(found, Unparsable):
                    return found
        read_page = await self._apart(url, len(body), ParsedPage, call)
        if isinstance(read_page, Unparsable):
            return replace(read_page, beginning=await self._beginning(body, url, content_type))
        return read_page

    async def _beginning(
        self, body: bytes, url: str, content_type: str | None
    ) -> ParsedPage | None:
        """Read as :func:`freshet.crawler.reduce.page.beginning`, or not at all."""
        read = partial(
            beginning,
            limits=TreeLimits(seconds=self._quick_s, memory=_BEGINNING_BYTES),
            agent_token=self._agent_token,
            max_links=self._max_links,
        )
        call = partial(read, body, url, content_type)
        with contextlib.suppress(_OutOfTime, ParserLost):
            limit_s = _BEGINNING * self.time_limit_s
            answer = await self._slowly(url, len(body), ParsedPage, call, limit_s)
            return None if isinstance(answer[0], Unparsable) else answer[0]
        return None

    async def parse_feed(self, body: bytes, url: str) -> Feed | Unparsable:
        """Read as :func:`crawler.reduce.sitemaps.read_feed`, out of the event loop's process."""
        return await self._apart(url, len(body), Feed, partial(read_feed, body, url))

    async def document(
        self, body: bytes, url: str, content_type: str | None, hints: SelectorHints | None = None
    ) -> "Document | Unparsable":
        """Read as :func:`freshet.crawler.reduce.document.document`, out of this process.

        ``hints`` take the place of the site's.
        """
        from freshet.crawler.reduce.document import Document, document  # noqa: PLC0415 - few ask

        hints = hints or self.hints(url)
        read = partial(document, body, url, content_type, hints=hints, deepest=_DEEPEST)
        return await self._apart(url, len(body), Document, read)

    async def channels(
        self, body: bytes, url: str, content_type: str | None, other: bytes | None = None
    ) -> "Channels | Unparsable":
        """Make as :func:`.reduce.channels.channels`; of a page parsed here in this process."""
        from freshet.crawler.reduce.channels import Channels, channels  # noqa: PLC0415 - no first crawl asks

        read = partial(channels, body, url, content_type, hints=self.hints(url), other=other)
        return await self._at_hand(read, body, url, content_type, Channels)

    async def standing(
        self, body: bytes, url: str, content_type: str | None, digests: Set[int]
    ) -> Blocks | Unparsable | None:
        """Find as :func:`.page.standing`, as :meth:`channels`; None if selectors choose."""
        if self.hints(url) != NO_HINTS:
            return None
        read = partial(standing, body, content_type, digests)
        return await self._at_hand(read, body, url, content_type, Blocks)

    async def _at_hand(
        self,
        read: "partial[Result]",
        body: bytes,
        url: str,
        content_type: str | None,
        kind: Callable[..., Result],
    ) -> Result | Unparsable:
        """Read a page that was perhaps parsed here a moment ago, in this process if it may be."""
        is_small = len(body) * _DOCUMENT_TIMES <= self._inline_bytes
        is_bounded = len(body) <= self._inline_bytes
        if is_bounded and format_of(content_type).most_inline is None and is_calm(body):
            try:
                # Its tree is mostly cached; the parser's process would make it again.
                return read() if is_small else await asyncio.to_thread(read)
            except Exception as error:  # noqa: BLE001  # as in parse()
                return Unparsable(f"{type(error).__name__}: {error}"[:200])
        return await self._apart(url, len(body), kind, partial(read, deepest=_DEEPEST))

    async def selector(
        self, url: str, sides: Sequence[Side], hints: SelectorHints
    ) -> dict[str, str] | Unparsable:
        """Find as :func:`freshet.crawler.reduce.page.selector_of`, out of this process."""
        find = partial(selector_of, url, sides, hints, deepest=_DEEPEST)
        return await self._apart(url, sum(len(body) for body, _, _ in sides), dict, find)

    async def offers(
        self, body: bytes, url: str, content_type: str | None
    ) -> "Offers | Unparsable":
        """Find as :func:`freshet.crawler.reduce.offers.offers`, out of this process."""
        from freshet.crawler.reduce.offers import as_offers, offers  # noqa: PLC0415 - few ask

        find = partial(offers, body, content_type, deepest=_DEEPEST)
        return await self._apart(url, len(body), as_offers, find)

    async def close(self) -> None:
        """End the processes, if there are any, and wait for them."""
        await asyncio.gather(*(each.close() for each in (self._first, self._second) if each))

    def _second_for(self, body: bytes) -> "_Worker | None":
        """Return the second process if the first is busy and it has the memory for this body."""
        if self._first.is_busy and len(body) <= _SECOND_BYTES and is_calm(body, _SECOND_TIMES):
            return self._second
        return None

    async def _apart(
        self, url: str, size: int, kind: Callable[..., Result], function: "partial[Result]"
    ) -> Result | Unparsable:
        """Call the function in the first process; behind other slow pages if it takes long."""
        host = origin(url).host
        if host not in self._slow_hosts:
            with contextlib.suppress(_OutOfTime):
                return await self._first.call(kind, function, self._quick_s)
            meet("time for a page", host)
        self._slow_hosts[host] = True
        try:
            answer = await self._slowly(url, size, kind, function, self.time_limit_s)
        except _OutOfTime as error:
            return Unparsable(str(error), is_lack=True)
        if answer[1] < self._quick_s:
            self._slow_hosts.pop(host, None)
        return answer[0]

    async def _slowly(
        self,
        url: str,
        size: int,
        kind: Callable[..., Result],
        function: "partial[Result]",
        time_limit_s: float,
    ) -> tuple[Result | Unparsable, float]:
        """Call the function in a fresh process after other slow pages; return also the seconds."""
        size, time = max(size, _LEAST_SLOW_BYTES), asyncio.get_running_loop().time
        if self._slow_bytes + size > SLOW_BYTES:
            meet("pages that are slow to parse", origin(url).host)
            raise ParserLost("too many slow pages wait for the parser")
        self._slow_bytes += size
        if self._set_aside is not None:
            self._set_aside()
        try:
            # Only one of them waits with the pages of other hosts.
            async with self._slow_turn:
                began_at = time()
                result = await self._first.call(kind, function, time_limit_s, fresh=True)
                return result, time() - began_at
        finally:
            self._slow_bytes -= size


def _apart(read: Callable[..., ParsedPage], *page: object) -> ParsedPage:
    """Read a page without its sketch, which is made where it is believed."""
    return replace(read(*page), sketch=None)


class _OutOfTime(Exception):
    """The function took more processor time than the process has."""


def _built(kind: Callable[..., Result], values: Mapping[str, Any]) -> Result:
    """Make a page, feed or document from the values of its fields."""
    made = {name: _as_tuples(value) for name, value in values.items()}
    columns = {n: _COLUMNS[n](**value) for n, value in made.items() if isinstance(value, dict)}
    return kind(**made | columns)


def _as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_tuples(each) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    return tuple(map(_as_tuples, value) if value and isinstance(value[0], list) else value)


@dataclass(slots=True, eq=False)
class _Worker:
    """One process that answers one call at a time; it is restarted after a failed call."""

    _wall_limit_s: float | None
    _memory_limit_bytes: int
    _modules: list[str] = field(default_factory=lambda: [*_MODULES], init=False)
    _process: Process | None = field(default=None, init=False)
    # A lock is open for a moment between two calls, a semaphore is not.
    _turn: asyncio.Semaphore = field(default_factory=asyncio.Semaphore, init=False)

    @property
    def is_busy(self) -> bool:
        """True if another call would wait."""
        return self._turn.locked()

    async def call(
        self,
        kind: Callable[..., Result],
        function: "partial[Result]",
        time_limit_s: float,
        *,
        fresh: bool = False,
    ) -> Result | Unparsable:
        """Return the function's result, of that kind, or the reason for a lack of one.

        For lack of memory in a process that has answered other calls, a fresh one tries again;
        ``fresh`` asks for it from the start.

        Raises:
            ParserLost: the process failed, not the function.
            _OutOfTime: the function takes more processor time than ``time_limit_s``.
        """
        async with self._turn:
            if (module := function.func.__module__) not in self._modules:
                # The process must not charge imports to the page.
                self._modules.append(module)
                fresh = True
            if fresh:
                await self._end()
            was_used = self._process is not None
            result = await self._answer(kind, function, time_limit_s)
            if was_used and isinstance(result, Unparsable) and result.is_lack:
                result = await self._answer(kind, function, time_limit_s)
            return result

    async def _answer(
        self, kind: Callable[..., Result], function: "partial[Result]", time_limit_s: float
    ) -> Result | Unparsable:
        if self._process is None:
            self._process = await _started(
                self._wall_limit_s, self._memory_limit_bytes, self._modules
            )
        process, result, reusable, answered = self._process, None, False, False
        try:
            answer = await self._exchange(process, pickle.dumps((time_limit_s, function)))
            answered, words = bool(answer), answer.decode("utf-8", "surrogatepass")
            # Of a large page each form takes much memory.
            del answer
            values, problem, is_lack, held_bytes = json.loads(words)
            del words
            result = None if problem is not None else _built(kind, values)
            reusable = problem is None and held_bytes <= _RETIRE_BYTES
        except TimeoutError as error:
            raise ParserLost(f"no answer within {self._wall_limit_s:g} s") from error
        except (EOFError, ConnectionError):
            problem, is_lack = None, True
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ParserLost(f"the parser's process answered nonsense: {error!r}") from error
        finally:
            # Also where this call is cancelled: its answer is not the next call's.
            if not reusable:
                await self._end()
        if not answered:
            problem = _cause(process, time_limit_s)
        return Unparsable(str(problem), bool(is_lack)) if result is None else result

    async def _exchange(self, process: Process, call: bytes) -> bytes:
        async with asyncio.timeout(self._wall_limit_s):
            stdin = cast(asyncio.StreamWriter, process.stdin)
            stdin.write(call)
            await stdin.drain()
            return await _received(process)

    async def close(self) -> None:
        """End the process; a call that waits for its answer raises :class:`ParserLost`."""
        if self._process is not None:
            _kill(self._process)
        async with self._turn:
            await self._end()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await _ended(process)


def _cause(process: Process, time_limit_s: float) -> str:
    """Explain how the page ended the process without an answer.

    Raises:
        ParserLost: it was not the page.
        _OutOfTime: it was its time limit.
    """
    if process.returncode == -signal.SIGPROF:
        raise _OutOfTime(f"parsing took more than {time_limit_s:g} s of processor time")
    from freshet.crawler.reduce.parser_worker import OUT_OF_MEMORY  # noqa: PLC0415 - not each crawl

    if process.returncode == OUT_OF_MEMORY:
        return "the parser's process ran out of memory"
    if process.returncode in _CRASHES:
        return "the parser's process crashed, most likely for want of memory"
    raise ParserLost(f"the parser's process ended with status {process.returncode}")


async def _started(
    wall_limit_s: float | None, memory_limit_bytes: int, modules: Sequence[str]
) -> Process:
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "freshet.crawler.reduce.parser_worker"),
            *(str(memory_limit_bytes), str(os.getpid()), *modules),
            stdin=PIPE,
            stdout=PIPE,
            cwd=_ROOT,
            limit=_PIPE_BYTES,
        )
    except OSError as error:
        raise ParserLost(f"the parser's process cannot be started: {error}") from error
    async with contextlib.AsyncExitStack() as unless_ready:
        unless_ready.push_async_callback(_ended, process)
        try:
            # The imports must not count as the first page's time.
            async with asyncio.timeout(wall_limit_s):
                await _received(process)
        except (EOFError, TimeoutError) as error:
            raise ParserLost("the parser's process did not start") from error
        unless_ready.pop_all()
    return process


async def _received(process: Process) -> bytes:
    stdout = cast(asyncio.StreamReader, process.stdout)
    from freshet.crawler.reduce.parser_worker import FRAME  # noqa: PLC0415 - not each crawl has one

    (length,) = FRAME.unpack(await stdout.readexactly(FRAME.size))
    if length > _FIRST_LIMIT_BYTES:
        raise EOFError
    return await stdout.readexactly(length)


async def _ended(process: Process) -> None:
    _kill(process)
    # Not wait(): it does not return while an answer of the process stays unread.
    await process.communicate()


def _kill(process: Process) -> None:
    # Not Process.kill(): that polls first and so takes the exit status from the waiter, which
    # asyncio logs as an unknown process.
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
