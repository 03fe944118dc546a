"""The HTTP listener of a daemon: ``/healthz`` and ``/metrics``, for this machine.

It shows figures to anyone who can connect and changes nothing. A page in a browser must not read
them through a name that it lets point to this machine (DNS rebinding): a request for a foreign
name is refused; an address as host is no name and needs no list.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

_METHODS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD})
_OURS = frozenset({"localhost"})
_HEADERS = {"Server": "freshet", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
#: Seconds that the daemon's end waits for answers under way.
_SHUTDOWN_S = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """The content of ``/healthz``: healthy without ``problems``."""

    problems: Collection[str]
    facts: Mapping[str, object]


class HealthListener:
    """HTTP server on an address from :meth:`open` to :meth:`close`.

    ``names`` are the host names that requests may be for beside localhost and addresses.
    """

    def __init__(
        self, registry: CollectorRegistry, health: Callable[[], Health], names: Collection[str] = ()
    ) -> None:
        self._registry = registry
        self._health = health
        self._names = _OURS | {name.lower() for name in names}
        self._runner: web.AppRunner | None = None

    async def open(self, address: str, port: int) -> str:
        """Listen; return the URL, with the free port that was chosen for port 0.

        Raises:
            OSError: the address cannot be listened at.
        """
        application = web.Application(middlewares=[self._guard])
        application.router.add_get("/healthz", self._tell_health)
        application.router.add_get("/metrics", self._tell_metrics)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        try:
            await web.TCPSite(runner, address, port).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        host, port = runner.addresses[0][:2]
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests for foreign names, and all methods but reading."""
        response: web.StreamResponse
        if request.method not in _METHODS:
            response = _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are allowed")
            response.headers["Allow"] = "GET, HEAD"
        elif not self._is_ours(request.headers.getall(hdrs.HOST, [])):
            words = "the Host header is not allowed; add its name to operation.host_names"
            response = _refusal(HTTPStatus.MISDIRECTED_REQUEST, words)
        else:
            try:
                response = await handler(request)
            except web.HTTPNotFound:
                response = _refusal(HTTPStatus.NOT_FOUND, "not found; try /healthz or /metrics")
        response.headers.update(_HEADERS)
        return response

    def _is_ours(self, hosts: list[str]) -> bool:
        """Return whether the request names one host, an address or one of our names."""
        if len(hosts) != 1:
            return False
        name, colon, port = hosts[0].lower().rpartition(":")
        if not (colon and port.isdigit()):
            name = hosts[0].lower()
        if name in self._names:
            return True
        with suppress(ValueError):
            ip_address(name.removeprefix("[").removesuffix("]"))
            return True
        return False

    async def _tell_health(self, _request: web.Request) -> web.Response:
        health = self._health()
        problems = list(health.problems)
        told = {"status": "unavailable" if problems else "ok", "problems": problems}
        return web.Response(
            status=HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK,
            text=json.dumps(told | dict(health.facts)) + "\n",
            content_type="application/json",
        )

    async def _tell_metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=encode(self._registry), headers={hdrs.CONTENT_TYPE: content_type})


def _refusal(status: HTTPStatus, words: str) -> web.Response:
    return web.Response(status=status, text=words + "\n")
