"""The listener: connections that are few, short and never waited for.

aiohttp reads HTTP; what it leaves open is bounded here. *Invariant.* At most ``most`` connections
are open, none longer than ``_LIFE_S``; where one more comes, the oldest goes. Consequence: who
opens many and says nothing, or says it slowly, keeps nobody else out for longer than that takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from freshet.crawler.errors import CrawlError
from freshet.crawler.receiving.endpoint import Pushed, Reply
from freshet.crawler.receiving.refusals import Refusals

log = logging.getLogger(__name__)

_LIFE_S: Final = 20.0
#: A body that can be much shorter than a page; 1 MiB at 350 kB/s.
_BODY_S: Final = 3.0
_SWEEP_S: Final = 1.0
#: Connections that wait to be accepted; all of them are accepted in one turn of the event loop.
_BACKLOG: Final = 32
_LINE_BYTES: Final = 8_190

Networks = Sequence[IPv4Network | IPv6Network]


@dataclass(slots=True)
class _Door:
    """An open connection; ``served``: it has brought a request that was answered."""

    opened_at: float
    transport: asyncio.Transport
    served: bool = False


class _Doors(web.Server):
    """aiohttp's server, which keeps its connections few and short."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        most: int,
        refusals: Refusals,
    ) -> None:
        super().__init__(
            handler, access_log=None, logger=_counting(refusals), keepalive_timeout=_LIFE_S,
            lingering_time=0, auto_decompress=False, max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES, max_headers=64, read_bufsize=2**16,
        )  # fmt: skip
        self._most = most
        self._refusals = refusals
        self._open: dict[RequestHandler, _Door] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Let one in; the oldest goes where there are too many."""
        super().connection_made(handler, transport)
        self._open[handler] = _Door(asyncio.get_running_loop().time(), transport)
        if len(self._open) > self._most:
            self._end(next(iter(self._open)), "too many connections")

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """One has gone."""
        super().connection_lost(handler, exc)
        self._open.pop(handler, None)

    def served(self, handler: RequestHandler) -> None:
        """A request of this connection has been answered."""
        if handler in self._open:
            self._open[handler].served = True

    def sweep(self, now: float) -> None:
        """End what has been open for too long."""
        while self._open:
            handler, door = next(iter(self._open.items()))
            if now < door.opened_at + _LIFE_S:
                return
            self._end(handler, "too long a connection")

    def _end(self, handler: RequestHandler, why: str) -> None:
        door = self._open.pop(handler)
        peer = door.transport.get_extra_info("peername")
        # Who keeps a connection for the next request does no wrong.
        if not door.served:
            self._refusals.count(why, str(peer[0]) if peer else "nowhere")
        door.transport.abort()


def _counting(refusals: Refusals) -> logging.Logger:
    """A logger for what aiohttp cannot read: one line a request is what a flood wants."""
    logger = logging.Logger(__name__)  # noqa: LOG001 - one for each listener, heard by nobody

    def count(record: logging.LogRecord) -> bool:
        source = record.args[0] if isinstance(record.args, tuple) and record.args else "somewhere"
        refusals.count("not HTTP", str(source))
        return False

    logger.addFilter(count)
    return logger


class Listener:
    """Listens at ``host`` and ``port``; ``proxies`` may say for whom they speak."""

    def __init__(
        self,
        answer: Callable[[Pushed], Awaitable[Reply]],
        refusals: Refusals,
        *,
        proxies: Networks = (),
        most: int = 256,
    ) -> None:
        self._answer = answer
        self._refusals = refusals
        self._proxies = proxies
        self._doors = _Doors(self._handle, most, refusals)
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen; the port, which may have been 0 for any.

        Raises:
            CrawlError: the address cannot be listened at.
        """
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._doors, host, port, backlog=_BACKLOG, reuse_address=True
            )
        except OSError as error:
            why = error.strerror or str(error)
            raise CrawlError(f"receiver.listen: cannot listen at {host}:{port}: {why}") from error
        self._sweeping = asyncio.create_task(self._sweep())
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Listen no more, and end what is open."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
            self._doors.pre_shutdown()
            await self._doors.shutdown(1.0)
            await self._server.wait_closed()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._doors.sweep(asyncio.get_running_loop().time())

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            reply = await self._answer(self._pushed(request))
        except Exception:  # whatever it is: the next request is answered
            log.exception("a pushed request could not be answered")
            reply = Reply(500)
        self._doors.served(request.protocol)
        headers = {"X-Content-Type-Options": "nosniff"}
        if reply.retry_after_s is not None:
            headers["Retry-After"] = str(reply.retry_after_s)
        return web.Response(
            status=reply.status, text=reply.body, content_type="text/plain", headers=headers
        )

    def _pushed(self, request: web.BaseRequest) -> Pushed:
        async def read(most: int) -> bytes | None:
            try:
                async with asyncio.timeout(_BODY_S):
                    return await _bounded(request, most)
            except web.RequestPayloadError as error:
                raise ConnectionError("the body is not what its headers say") from error

        headers = {name.lower(): value for name, value in request.headers.items()}
        length = request.content_length
        return Pushed(
            request.method, request.path, request.query, headers, length,
            self._source(request.remote or "", headers.get("x-forwarded-for", "")), read,
        )  # fmt: skip

    def _source(self, peer: str, forwarded: str) -> str:
        """Whose request it is: a proxy of ours tells, in the last place of the header."""
        if not forwarded or not self._proxies:
            return peer
        try:
            address = ip_address(peer)
        except ValueError:
            return peer
        if not any(address in network for network in self._proxies):
            return peer
        return forwarded.rpartition(",")[2].strip()[:64] or peer


async def _bounded(request: web.BaseRequest, most: int) -> bytes | None:
    parts, size = [], 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > most:
            return None
        parts.append(chunk)
    return b"".join(parts)
