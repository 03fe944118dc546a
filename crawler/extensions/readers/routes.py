"""The links of lists: ``/o/ID`` notes that a page was opened, and leads on to it."""

import re
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web

from freshet.config.settings import Settings
from freshet.crawler.errors import UnknownPage
from freshet.crawler.extensions.readers import tables
from freshet.crawler.extensions.readers.audience import note_opening
from freshet.crawler.extensions.readers.settings import PresentationSettings
from freshet.crawler.read.api import StoreApi
from freshet.crawler.read.library import asking, noting
from freshet.crawler.service.http import Answer, whole
from freshet.crawler.service.logins import is_of_others
from freshet.storage.errors import StoreError

_OPEN: Final = "/o/"
#: Headers of a request for a page that nobody has asked for yet.
_AHEAD: Final = ("Sec-Purpose", "Purpose", "X-Moz")


class OpenedLinks:
    """The answers to links of lists.

    Attributes:
        routes: the routes by path.
    """

    def __init__(self, api: StoreApi, settings: Settings) -> None:
        """Note openings in the stores of ``api``, which stays the caller's."""
        self._library = api.library
        self._links = settings.group(PresentationSettings).links
        self.routes: Sequence[web.AbstractRouteDef] = [web.get(f"{_OPEN}{{id}}", self._open)]

    async def _open(self, request: web.Request) -> Answer:
        """Note an opening, and lead on to the page."""
        name = request.match_info["id"]
        if not self._links or not re.fullmatch(r"[0-7][0-9a-f]{15}", name):
            raise UnknownPage("there is no such link; search again")
        showing_id = int(name, 16)
        shard, url, is_opened = await self._shown(showing_id)
        ahead = any("prefetch" in request.headers.get(each, "").lower() for each in _AHEAD)
        # A mail is read in a browser, too: there somebody has followed the link.
        is_followed = request.headers.get("Sec-Fetch-User") == "?1"
        is_wish = not ahead and (is_followed or not is_of_others(request))
        if request.method == hdrs.METH_GET and not is_opened and is_wish:
            opening = noting(note_opening, showing_id=showing_id, at=time.time())
            await self._library.one(shard, opening)
        headers = {hdrs.LOCATION: url, hdrs.REFERRER_POLICY: "no-referrer"}
        return whole(b"", status=HTTPStatus.FOUND, headers=headers)

    async def _shown(self, showing_id: int) -> tuple[int, str, bool]:
        """Return the shard and URL of a page that a list showed, and whether it was opened."""
        read = asking(tables.found, showing_id=showing_id)
        told, down = await self._library.each(lambda _: read)
        found = {shard: each for shard, each in told.items() if each is not None}
        if not found and down:
            raise StoreError(f"a shard is down: {next(iter(down.values()))}")
        if not found:
            raise UnknownPage("this link is too old, or was never made; search again")
        ((shard, (url, is_opened)),) = found.items()
        return shard, url, is_opened
