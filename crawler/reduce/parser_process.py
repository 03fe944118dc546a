"""Parsing without ever stopping the event loop.

Invariant: what runs in the event loop's process is bounded by counts that no arrangement
of bytes evades (:func:`crawler.reduce.nesting.is_calm`). Consequence: every other body costs at
most one process, which is killed at its time limit and held at its memory limit; the page
is then recorded as unparsable, and no small page has waited.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, TypeVarTuple, cast

from freshet.crawler.reduce.feeds import Feed, read_feed
from freshet.crawler.reduce.markup import NO_SITE_HINTS, SiteHints
from freshet.crawler.reduce.nesting import is_calm
from freshet.crawler.reduce.page import ParsedPage, parse
from freshet.crawler.reduce.parser_worker import FRAME, read_page

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

#: Address space of the process; pages of 10 MiB were seen to take 320 MB of it.
_MEMORY_LIMIT_BYTES: Final = 512 << 20
#: A process that holds more than this after an answer is ended, to give it back.
_RETIRE_BYTES: Final = 128 << 20
#: Without us the process would end itself so much after its limit.
_GRACE_S: Final = 2.0
_START_LIMIT_S: Final = 60.0
_PIPE_BYTES: Final = 1 << 20
#: Where the process finds this package, installed or not.
_ROOT: Final = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Unparsable:
    """A body that could not be parsed, and why, in words for people."""

    reason: str


class Parser:
    """Parses pages and feeds; the owner calls :meth:`close`.

    ``inline_bytes`` bounds the length of a body that is parsed in the event loop's process,
    where 256 KiB cost 12 ms, and at the very worst some 200; ``time_limit_s`` is what any other
    body may take. ``max_links`` are taken of a page; ``agent_token`` is the robots token;
    ``hints`` tell where a site has its main text.
    """

    def __init__(
        self,
        *,
        time_limit_s: float = 5.0,
        inline_bytes: int = 256 * 1024,
        max_links: int = 50_000,
        agent_token: str = "freshet",
        hints: SiteHints = NO_SITE_HINTS,
    ) -> None:
        self._inline_bytes = inline_bytes
        self._max_links = max_links
        self._agent_token = agent_token
        self._hints = hints
        self._worker = _Worker(time_limit_s)

    async def parse(
        self,
        body: bytes,
        url: str,
        content_type: str | None,
    ) -> ParsedPage | Unparsable:
        """As :func:`crawler.reduce.page.parse`; what cannot be parsed is a value, not an error."""
        hints = self._hints.of(url)
        if len(body) > self._inline_bytes or not is_calm(body):
            return await self._worker.call(
                read_page, body, url, content_type, self._agent_token, self._max_links, hints
            )
        try:
            return parse(body, url, content_type, self._agent_token, self._max_links, hints)
        except Exception as error:  # noqa: BLE001  # one odd page must not end the crawl
            return Unparsable(f"{type(error).__name__}: {error}"[:200])

    async def parse_feed(self, body: bytes, url: str) -> Feed | Unparsable:
        """As :func:`crawler.reduce.feeds.read_feed`, always out of the event loop's process."""
        return await self._worker.call(read_feed, body, url)

    async def close(self) -> None:
        """End the process, if there is one, and wait for it."""
        await self._worker.close()


class _Worker:
    """One process that answers one call at a time.

    Started at the first call, and anew after any that did not end well.
    """

    def __init__(self, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def call(
        self, function: Callable[[*Arguments], Result], *arguments: *Arguments
    ) -> Result | Unparsable:
        """The function's result from the process, or why there is none.

        Raises:
            OSError: no process can be started.
        """
        async with self._turn:
            process = self._process = self._process or await _started(self._time_limit_s)
            result, reusable = None, False
            try:
                answer = await self._exchange(process, pickle.dumps((function, arguments)))
                result, problem, held_bytes = pickle.loads(answer)  # noqa: S301  # our own child
                reusable = problem is None and held_bytes <= _RETIRE_BYTES
            except TimeoutError:
                problem = f"parsing took longer than {self._time_limit_s:g} s"
            except (EOFError, ConnectionError):
                problem = "the parser's process died, most likely for want of memory"
            finally:
                # Also where this call is cancelled: its answer is not the next call's.
                if not reusable:
                    self._process = None
                    await _ended(process)
            return Unparsable(problem) if problem is not None else cast(Result, result)

    async def _exchange(self, process: Process, call: bytes) -> bytes:
        async with asyncio.timeout(self._time_limit_s):
            stdin = cast(asyncio.StreamWriter, process.stdin)
            stdin.write(FRAME.pack(len(call)))
            stdin.write(call)
            await stdin.drain()
            return await _received(process)

    async def close(self) -> None:
        """End the process; a call that waits for it is told that it died."""
        if self._process is not None:
            _kill(self._process)
        async with self._turn:
            process, self._process = self._process, None
            if process is not None:
                await _ended(process)


async def _started(time_limit_s: float) -> Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "freshet.crawler.reduce.parser_worker"),
        *(str(time_limit_s + _GRACE_S), str(_MEMORY_LIMIT_BYTES), str(os.getpid())),
        stdin=PIPE,
        stdout=PIPE,
        cwd=_ROOT,
        limit=_PIPE_BYTES,
    )
    ready = False
    try:
        # Its imports are no part of the first page's time.
        async with asyncio.timeout(_START_LIMIT_S):
            await _received(process)
        ready = True
    except (EOFError, TimeoutError) as error:
        raise OSError("the parser's process did not start") from error
    finally:
        if not ready:
            await _ended(process)
    return process


async def _received(process: Process) -> bytes:
    stdout = cast(asyncio.StreamReader, process.stdout)
    (length,) = FRAME.unpack(await stdout.readexactly(FRAME.size))
    return await stdout.readexactly(length)


async def _ended(process: Process) -> None:
    _kill(process)
    # Not wait(): a process is not seen to end while an answer of its stays unread.
    await process.communicate()


def _kill(process: Process) -> None:
    """Kill it, if it is not known to have ended.

    Not Process.kill(): that looks first whether it has, and takes its end from whoever waits for
    it, which asyncio logs as a process that nobody knows.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
