"""A few hosts on loopback that answer exactly what a test says, and log who asked."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Page:
    """An answer; ``{origin:NAME}`` in its texts becomes the origin of another host."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scripted:
    """The running hosts: ``log`` holds (host name, target) in order of arrival, ``sent`` fields."""

    port: int
    scheme: str
    log: list[tuple[str, str]]
    sent: list[Mapping[str, str]] = field(default_factory=list)

    def origin(self, name: str) -> str:
        return f"{self.scheme}://{name}.localhost:{self.port}"

    def asked(self, name: str) -> list[str]:
        return [target for host, target in self.log if host == name]


@asynccontextmanager
async def scripted(
    hosts: Mapping[str, Mapping[str, Page]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Scripted]:
    """Serve ``hosts``: name, then target, then answer. Everything else is a 404."""
    log: list[tuple[str, str]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        name = request.host.split(".")[0]
        log.append((name, request.path_qs))
        running.sent.append(request.headers)
        page = hosts.get(name, {}).get(request.path_qs, Page("not here", 404))
        headers = {key: filled(value) for key, value in page.headers.items()}
        headers.setdefault("Content-Type", "text/html; charset=utf-8")
        body = page.body if isinstance(page.body, bytes) else filled(page.body).encode()
        return web.Response(body=body, status=page.status, headers=headers)

    def filled(text: str) -> str:
        for name in hosts:
            text = text.replace(f"{{origin:{name}}}", running.origin(name))
        return text

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    running = Scripted(port, "https" if tls else "http", log)
    try:
        yield running
    finally:
        await runner.cleanup()
