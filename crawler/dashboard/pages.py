"""The pages of the dashboard: their routes, and how values become HTML.

Each page is a view, which reads what it shows, and a template. Pages work without JavaScript: htmx
replaces parts of them instead of the whole, and uPlot draws the tables of class ``plot``.

*Invariant.* A template escapes whatever it is given, and no page allows scripts or styles but the
files of ``/static/``: what a site wrote is shown, and does nothing.
"""

import asyncio
import mimetypes
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from hashlib import blake2b
from http import HTTPStatus
from importlib.resources import files
from time import time
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from aiohttp import hdrs, web
from jinja2 import Environment, PackageLoader, StrictUndefined

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler import terminal
from freshet.crawler.clock import iso
from freshet.crawler.dashboard import changes, one_page, overview
from freshet.crawler.dashboard.asked import Asked
from freshet.crawler.service.api import StoreApi
from freshet.crawler.service.http import EVENTS, Answer, HttpRefusal, Route, whole

#: Reads what a page shows.
View: TypeAlias = Callable[[Asked], Awaitable[Mapping[str, object]]]

#: By path: the view, and the template that shows what it returns.
_PAGES: Final[Mapping[str, tuple[View, str]]] = MappingProxyType(
    {
        "/": (overview.shown, "overview.html"),
        "/changes": (changes.listed, "changes.html"),
        "/changes/one": (changes.one, "change.html"),
        "/page": (one_page.shown, "page.html"),
        "/page/text": (one_page.text, "text.html"),
        "/pages": (one_page.listed, "pages.html"),
    }
)
_STATIC: Final = "/static/"
_HTML: Final = "text/html; charset=utf-8"
#: Only our own files, and nobody frames us.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    hdrs.REFERRER_POLICY: "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
#: Seconds between two reads of the overview, and reads without news after which a line is sent all
#: the same, so that the connection stays open.
_LIVE_S: Final = 2.0
_QUIET_READS: Final = 7


class Dashboard:
    """The pages of a store, beside its API.

    Attributes:
        routes: of both, for a server.
    """

    def __init__(self, api: StoreApi, settings: Settings) -> None:
        """Show what ``api`` answers from; it stays the caller's."""
        self._library, self._settings = api.library, settings
        self._templates = Environment(
            loader=PackageLoader("freshet.crawler.dashboard"), autoescape=True,
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters |= {
            name: getattr(terminal, name)
            for name in ("amount", "counted", "percent", "span", "size")
        } | {"query": urlencode, "iso": iso}
        self._templates.globals |= {
            "version": __version__, "relative": terminal.relative, "name": api.name
        }  # fmt: skip
        pages = {path: self._told(partial(self._page, *of)) for path, of in _PAGES.items()}
        self.routes: dict[str, Route] = {
            **api.routes, **pages, _STATIC: _file, EVENTS: self._live
        }  # fmt: skip

    def _told(self, route: Route) -> Route:
        """Return a route that shows its errors as a page."""

        async def answer(request: web.BaseRequest) -> Answer:
            try:
                return await route(request)
            except Exception as error:
                if (refused := HttpRefusal.of(error)) is None:
                    raise
                values = {"status": refused.status, "why": str(refused)}
                return self._whole("error.html", values, self._asked(request), refused.status)

        return answer

    def _asked(self, request: web.BaseRequest) -> Asked:
        return Asked(self._library, self._settings, request.path, dict(request.query), time())

    async def _page(self, view: View, template: str, request: web.BaseRequest) -> Answer:
        asked = self._asked(request)
        values: dict[str, Any] = {"status": HTTPStatus.OK, **await view(asked)}
        return self._whole(template, values, asked, values["status"])

    def _whole(
        self, template: str, values: Mapping[str, object], asked: Asked,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Answer:  # fmt: skip
        body = self._html(template, values, asked).encode("utf-8", "replace")
        return whole(body, _HTML, status=status, etag="", headers=_HEADERS)

    def _html(self, template: str, values: Mapping[str, object], asked: Asked) -> str:
        common = {"path": asked.path, "asked": asked.query, "now": asked.now, "down": {}}
        return self._templates.get_template(template).render(common | dict(values))

    async def _live(self, request: web.BaseRequest) -> Answer:
        asked = Asked(self._library, self._settings, "/", {}, time())
        return Answer(self._events(asked), "text/event-stream", live=True, headers=_HEADERS)

    async def _events(self, asked: Asked) -> AsyncGenerator[bytes, None]:
        """Yield the overview's live part whenever it is another one."""
        shown, quiet = b"", 0
        while True:
            values = await overview.shown(asked.at(time()))
            html = self._html("overview_live.html", values, asked.at(time()))
            lines = "".join(f"data: {line}\n" for line in html.splitlines())
            if (digest := blake2b(html.encode("utf-8", "replace")).digest()) != shown:
                shown, quiet = digest, 0
                yield f"event: overview\n{lines}\n".encode("utf-8", "replace")
            elif (quiet := quiet + 1) % _QUIET_READS == 0:
                yield b": nothing new\n\n"
            await asyncio.sleep(_LIVE_S)


async def _file(request: web.BaseRequest) -> Answer:
    """Answer a file of ours."""
    name = request.path.removeprefix(_STATIC)
    found = _files().get(name)
    if found is None:
        raise HttpRefusal(HTTPStatus.NOT_FOUND, f"there is no file {name[:80]}")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return whole(found, kind, etag="", headers=_HEADERS)


def _files() -> dict[str, bytes]:
    static = files(__package__) / "static"
    return {
        f"{prefix}{each.name}": each.read_bytes()
        for folder, prefix in ((static, ""), (static / "vendor", "vendor/"))
        for each in folder.iterdir()
        if each.is_file()
    }
