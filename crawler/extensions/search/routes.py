"""``GET /v1/search``; ``openapi.toml`` beside this module describes it."""

import time
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from freshet.config.settings import Settings
from freshet.crawler.extensions.search.searching import Query, as_json, note_list, remember, search
from freshet.crawler.extensions.search.settings import SearchSettings
from freshet.crawler.read.api import StoreApi, down_header, down_of
from freshet.crawler.read.lists import Audience, audience_of
from freshet.crawler.service.http import Answer, whole
from freshet.crawler.service.logins import is_of_others

_SEARCH: Final = "/v1/search"
#: Seconds for which the order of lists does not follow new openings.
_AUDIENCE_S: Final = 60.0


class SearchRoutes:
    """The answers to searches of a store.

    Attributes:
        routes: the routes by path.
    """

    def __init__(self, api: StoreApi, settings: Settings) -> None:
        """Search what ``api`` answers from; it stays the caller's."""
        self._api, self._settings = api, settings
        self._remembers = settings.group(SearchSettings).remember
        self._known_audience: Audience | None = None
        self._audience_until = 0.0
        self.routes: Sequence[web.AbstractRouteDef] = [web.get(_SEARCH, self._search)]

    async def _search(self, request: web.Request) -> Answer:
        asked, library = self._api.asked(_SEARCH, request), self._api.library
        query = Query.parse(asked["q"], time.time(), site=asked["site"], since=asked["since"])
        now = time.time()
        audience = await self._audience(now)
        found, counts, down = await search(
            library, query, asked["limit"], offset=asked["offset"], now=now,
            by_importance=asked["by_importance"], audience=audience,
        )  # fmt: skip
        # A request that a page of another origin makes through a browser is not a user's search.
        is_wish = not is_of_others(request)
        if self._remembers and is_wish:
            await remember(library, query)
        linked = audience is not None and audience.links and is_wish
        if audience is not None and linked:
            await note_list(library, audience, "http", now, found)
        told = as_json(asked["q"], found, counts, linked=linked) | down_of(down)
        # Each list has separate links.
        return whole(told, name=None if linked else "", headers=down_header(down))

    async def _audience(self, now: float) -> Audience | None:
        """Return the recorded openings, at most a minute old."""
        if now >= self._audience_until:
            self._known_audience = await audience_of(self._api.library, self._settings, now)
            self._audience_until = now + _AUDIENCE_S
        return self._known_audience
