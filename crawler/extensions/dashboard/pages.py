"""The pages of the dashboard: their routes, and how values become HTML.

Each page is a view, which reads its data, and a template. Pages work without JavaScript: htmx
replaces parts of them instead of the whole, and uPlot draws the tables of class ``plot``.

*Invariant.* A template escapes all of its data, and pages allow scripts and styles from
``/static/`` alone: texts of sites are shown, and have no effect.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from math import inf
from pathlib import Path
from time import time
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from aiohttp import hdrs, web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from freshet import __version__
from freshet.config.settings import Settings
from freshet.crawler.errors import UsageError
from freshet.crawler.extensions.dashboard import changes, overview, page, site_settings, sites
from freshet.crawler.extensions.dashboard.adding import Adding
from freshet.crawler.extensions.dashboard.daemon_child import DaemonChild
from freshet.crawler.extensions.dashboard.request import (
    PAGES,
    ChangingPage,
    DashboardRequest,
    ExtensionPage,
)
from freshet.crawler.extensions.dashboard.settings_file import SettingsFile
from freshet.crawler.frontier.clock import iso
from freshet.crawler.read.api import StoreApi
from freshet.crawler.run import terminal
from freshet.crawler.run.explanation import is_vague
from freshet.crawler.service.http import EVENTS, FORM, Answer, HttpRefusal, leading, whole
from freshet.crawler.service.logins import CSRF, LOGIN, place_of, stood_at
from freshet.entry_points import folder, loaded

#: Reads the data of a page.
View: TypeAlias = Callable[[DashboardRequest], Awaitable[Mapping[str, object]]]


async def _login(_asked: DashboardRequest) -> Mapping[str, object]:
    return {"why": ""}


#: By path: the view, and the template for its data.
_PAGES: Final[Mapping[str, tuple[View, str]]] = MappingProxyType(
    {
        "/": (overview.opened, "overview.html"),
        "/changes": (changes.listed, "changes.html"),
        "/changes/one": (changes.one, "change.html"),
        "/page": (page.shown, "page.html"),
        "/page/text": (page.text, "text.html"),
        "/page/numbers": (page.numbers, "numbers.html"),
        "/pages": (page.listed, "pages.html"),
        "/sites": (sites.listed, "sites.html"),
        "/site": (sites.one, "site.html"),
        "/settings": (site_settings.shown, "settings.html"),
        LOGIN: (_login, "login.html"),
    }
)
_STATIC: Final = "/static"
_HTML: Final = "text/html; charset=utf-8"
#: A browser loads only files of this server, and no site shows a page in a frame.
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    # Forms name their page; other sites do not learn which page was read.
    hdrs.REFERRER_POLICY: "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
#: Characters that change the direction of the text after them.
_TURNING: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Seconds between two reads of the store's mark. After ``_QUIET_READS`` without news a line is
#: sent, so that the connection stays open.
_LIVE_S: Final = 2.0
_QUIET_READS: Final = 7
#: Seconds after which the ages on the overview are updated.
_AGES_S: Final = 60.0


class Dashboard:
    """The pages of a store, beside its API.

    Attributes:
        routes: of both, for a server.
    """

    def __init__(self, api: StoreApi, settings: Settings) -> None:
        """Show what ``api`` answers from; it stays the caller's."""
        self._library, self._file = api.library, SettingsFile(api, settings)
        self._child = DaemonChild(api.library.path, api.source)
        self._adding = Adding(self._child)
        # The server keeps the token of its start.
        self._has_token = bool(settings.operation.token)
        self._name, self._templates = api.name, _templates()
        added: list[ExtensionPage] = [
            make(api.library.path, settings) for make in loaded(PAGES).values()
        ]
        self._added = [(each.path, each.label) for each in added]
        views = {**_PAGES, "/add": (self._adding.shown, "add.html")}
        views |= {"/": (self._overview, "overview.html")}
        views |= {**{each.path: (each.shown, each.template) for each in added}}
        self.routes: Iterable[web.AbstractRouteDef] = [
            *api.routes,
            *(web.get(path, partial(self._page, *of)) for path, of in views.items()),
            web.post("/settings", self._change),
            web.post("/add", partial(self._changed, self._adding)),
            web.post("/daemon", self._start_or_stop),
            web.get(EVENTS, self._live),
            web.static(_STATIC, Path(__file__).parent / "static"),
            *(route for each in added for route in each.routes),
            *(
                web.post(each.path, partial(self._changed, each))
                for each in added
                if isinstance(each, ChangingPage)
            ),
        ]

    def refused(self, request: web.BaseRequest, refusal: HttpRefusal) -> Answer:
        """Return a refusal as a page. A refused login shows the form again."""
        values = {"status": refusal.status, "why": str(refusal), "back": stood_at(request)}
        template = "login.html" if request.path == LOGIN else "error.html"
        answer = self._whole(template, values, self._asked(request), refusal.status)
        answer.headers.update(refusal.headers)
        return answer

    def _asked(self, request: web.BaseRequest) -> DashboardRequest:
        self._file.read()
        return DashboardRequest(
            self._library, self._file, request.path, dict(request.query), time(),
            csrf=request[CSRF],
        )  # fmt: skip

    async def _change(self, request: web.Request) -> Answer:
        form, asked = request[FORM], self._asked(request)
        if "name" in form:
            await self._file.put(form["name"], form.get("value", "").strip())
        else:
            await site_settings.change(asked, form)
        return leading(place_of(form.get("next", "")))

    async def _changed(self, page_of_forms: ChangingPage, request: web.Request) -> Answer:
        return leading(await page_of_forms.change(self._asked(request), request[FORM]))

    async def _start_or_stop(self, request: web.Request) -> Answer:
        what = request[FORM].get("value", "")
        if what not in ("start", "stop"):
            raise UsageError(f"value={what[:80]}: accepted are start and stop")
        await (self._child.start() if what == "start" else self._child.stop())
        return leading(place_of(request[FORM].get("next", "")))

    async def _overview(self, asked: DashboardRequest) -> Mapping[str, object]:
        return {**await overview.opened(asked), "child": self._child.state()}

    async def close(self) -> None:
        """End the daemon that this server has started."""
        await self._child.close()

    async def _page(self, view: View, template: str, request: web.Request) -> Answer:
        asked = self._asked(request)
        values: dict[str, Any] = {"status": HTTPStatus.OK, **await view(asked)}
        return self._whole(template, values, asked, values["status"])

    def _whole(
        self, template: str, values: Mapping[str, object], asked: DashboardRequest,
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Answer:  # fmt: skip
        body = self._html(template, values, asked).encode("utf-8", "replace")
        return whole(body, _HTML, status=status, name="", headers=_HEADERS)

    def _html(self, template: str, values: Mapping[str, object], asked: DashboardRequest) -> str:
        common = {"path": asked.path, "asked": asked.query, "now": asked.now, "down": {}}
        common |= {"has_token": self._has_token, "source": asked.file.path}
        common |= {"csrf": asked.csrf, "name": self._name, "added": self._added}
        return self._templates.get_template(template).render(common | dict(values))

    async def _live(self, request: web.Request) -> Answer:
        asked = DashboardRequest(self._library, self._file, "/", {}, time())
        return Answer(self._events(asked), "text/event-stream", live=True, headers=_HEADERS)

    async def _events(self, asked: DashboardRequest) -> AsyncGenerator[bytes, None]:
        """Yield the live part of the overview when the store or the ages have changed."""
        mark, sent_at, quiet = None, -inf, 0
        while True:
            now, found = time(), await overview.mark(asked)
            if found != mark or now - sent_at >= _AGES_S:
                mark, sent_at, quiet, asked = found, now, 0, replace(asked, now=now)
                values = await overview.shown(asked)
                html = self._html("overview_live.html", values, asked)
                lines = "".join(f"data: {line}\n" for line in html.splitlines())
                yield f"event: overview\n{lines}\n".encode("utf-8", "replace")
            elif (quiet := quiet + 1) % _QUIET_READS == 0:
                yield b": nothing new\n\n"
            await asyncio.sleep(_LIVE_S)


@cache
def _templates() -> Environment:
    modules = [__name__, *(make.__module__ for make in loaded(PAGES).values())]
    made = Environment(
        loader=FileSystemLoader([folder(each) / "templates" for each in modules]), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    shown = (
        "amount", "counted", "percent", "span", "size", "changed_share", "blocks", "rhythm",
        "spending",
    )  # fmt: skip
    made.filters |= {name: getattr(terminal, name) for name in shown}
    made.filters |= {"is_vague": is_vague}
    made.filters |= {"query": urlencode, "iso": iso, "plain_title": partial(_TURNING.sub, "")}
    made.globals |= {"version": __version__, "relative": terminal.relative}
    for name in made.list_templates():
        # Compiled at the start, and not while the first reader waits.
        made.get_template(name)
    return made
