"""An HTTP server for untrusted clients: it limits the number and duration of connections.

aiohttp parses HTTP; this module limits connections. *Invariant.* At most ``most`` connections are
open, none longer than ``_LIFE_S``; a further one closes the oldest. Consequence: a client with many
silent or slow connections keeps others out no longer than that. Connections with an accepted
long-running request are counted separately, with a limit per kind of request.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

_LIFE_S: Final = 20.0
_SWEEP_S: Final = 1.0
#: Backlog of connections; all are accepted in one turn of the event loop.
_BACKLOG: Final = 32
_LINE_BYTES: Final = 8_190


@dataclass(slots=True)
class _Connection:
    """An open connection; ``served``: one of its requests has been answered."""

    opened_at: float
    transport: asyncio.Transport
    served: bool = False
    kind: str = ""


class BoundedServer(web.Server):
    """aiohttp's server with limited connections; ``refused`` is called with a reason and a source.

    ``request_factory`` is that of the application which owns the handler.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        most: int,
        refused: Callable[[str, str], None],
        *,
        places: Mapping[str, int] = MappingProxyType({}),
        request_factory: Callable[..., web.BaseRequest] | None = None,
    ) -> None:
        async def answered(request: web.BaseRequest) -> web.StreamResponse:
            try:
                response = await handler(request)
            finally:
                self._answers.discard(asyncio.current_task())
                if (lasted := self._left(request.protocol)) is not None:
                    # Its last bytes get the duration of a short connection.
                    lasted.opened_at = asyncio.get_running_loop().time()
                    self._open[request.protocol] = lasted
            if request.protocol in self._open:
                self._open[request.protocol].served = True
            return response

        super().__init__(
            answered, request_factory=request_factory, access_log=None, logger=_counting(refused),
            keepalive_timeout=_LIFE_S, lingering_time=0, auto_decompress=False,
            max_line_size=_LINE_BYTES, max_field_size=_LINE_BYTES, max_headers=64,
            read_bufsize=2**16,
            # A long-running response ends when its reader leaves.
            handler_cancellation=bool(places),
        )  # fmt: skip
        self._most, self._places = most, places
        self._taken = Counter[str]()
        self._refused = refused
        self._open: dict[RequestHandler, _Connection] = {}
        self._lasting: dict[RequestHandler, _Connection] = {}
        self._answers = set[asyncio.Task[object] | None]()
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen; return address and port, which may have been given as 0 for any.

        Raises:
            OSError: the address cannot be used.
        """
        self._server = await asyncio.get_running_loop().create_server(
            self, host, port, backlog=_BACKLOG, reuse_address=True
        )
        self._sweeping = asyncio.create_task(self._sweep())
        address, number = self._server.sockets[0].getsockname()[:2]
        return str(address), int(number)

    async def close(self) -> None:
        """Stop listening, end long-running responses, and close all connections."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._server is not None:
            self._server.close()
            for answer in filter(None, self._answers):
                # Cancel once: responses whose readers have left are cleaning up already.
                if not answer.cancelling():
                    answer.cancel()
            await asyncio.gather(*filter(None, self._answers), return_exceptions=True)
            self.pre_shutdown()
            await self.shutdown(1.0)
            await self._server.wait_closed()
            self._server = None

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Accept a connection; close the oldest one if there are too many."""
        super().connection_made(handler, transport)
        self._open[handler] = _Connection(asyncio.get_running_loop().time(), transport)
        if len(self._open) > self._most:
            self._end(next(iter(self._open)), "too many connections")

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Remove a closed connection."""
        super().connection_lost(handler, exc)
        self._open.pop(handler, None)
        self._left(handler)

    def keep(self, request: web.BaseRequest, kind: str) -> bool:
        """Reserve a place for a long-running request of a kind; return False if all are taken."""
        if self._taken[kind] >= self._places[kind] or request.protocol not in self._open:
            return False
        self._taken[kind] += 1
        kept = self._lasting[request.protocol] = self._open.pop(request.protocol)
        kept.kind = kind
        self._answers.add(asyncio.current_task())
        return True

    def _left(self, handler: RequestHandler) -> _Connection | None:
        """Release the place of a connection, if it has one."""
        lasted = self._lasting.pop(handler, None)
        if lasted is not None:
            self._taken[lasted.kind] -= 1
        return lasted

    def sweep(self, now: float) -> None:
        """Close connections that have been open for too long."""
        while self._open and next(iter(self._open.values())).opened_at <= now - _LIFE_S:
            self._end(next(iter(self._open)), "connection too long")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep(asyncio.get_running_loop().time())

    def _end(self, handler: RequestHandler, why: str) -> None:
        connection = self._open.pop(handler)
        peer = connection.transport.get_extra_info("peername")
        # Closing a kept-alive connection refuses no request.
        if not connection.served:
            self._refused(why, str(peer[0]) if peer else "nowhere")
        connection.transport.abort()


def _counting(refused: Callable[[str, str], None]) -> logging.Logger:
    """Return a logger that only counts malformed requests, so that a flood cannot fill the log."""
    logger = logging.Logger(__name__)  # noqa: LOG001 - one for each server, heard by nobody

    def count(record: logging.LogRecord) -> bool:
        source = record.args[0] if isinstance(record.args, tuple) and record.args else "somewhere"
        refused("not HTTP", str(source))
        return False

    logger.addFilter(count)
    return logger
