"""``/.well-known/http-message-signatures-directory``: the public keys, signed by each of them.

Requests need no token. Without ``identity.directory`` the answer is 404.
"""

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web

from freshet.config.settings import Settings
from freshet.crawler.errors import CrawlError
from freshet.crawler.extensions.identity.agent import MEDIA_TYPE, WELL_KNOWN, IdentitySettings
from freshet.crawler.read.api import StoreApi
from freshet.crawler.service.http import Answer, HttpRefusal

log = logging.getLogger(__name__)

#: Verifiers ask again after a day, as in the example of the draft.
_CACHED: Final = {hdrs.CACHE_CONTROL: "max-age=86400"}


class KeyDirectory:
    """The keys of the settings, read from their file at each request."""

    def __init__(self, _api: StoreApi, settings: Settings) -> None:
        self._said = settings.group(IdentitySettings)
        self.routes: Sequence[web.AbstractRouteDef] = [web.get(WELL_KNOWN, self._tell)]

    async def _tell(self, request: web.Request) -> Answer:
        if not self._said.directory:
            raise HttpRefusal(HTTPStatus.NOT_FOUND, "no key is published: identity.directory")
        now = time.time()
        try:
            from freshet.crawler.extensions.identity.keys import directory, key_file, read_keys  # noqa: PLC0415 - an extra
            from freshet.crawler.extensions.identity.signing import directory_fields  # noqa: PLC0415 - likewise

            keys = read_keys(key_file(self._said.key))
        except CrawlError as error:
            log.warning("the keys cannot be published: %s", error)
            why = "the keys cannot be read; see the log of the server"
            raise HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, why) from error
        body = directory(keys, now)
        signed = directory_fields(keys, body, request.host.lower(), now)

        async def whole_body() -> AsyncGenerator[bytes, None]:
            yield body

        # Compressed, it would have another digest.
        return Answer(whole_body(), MEDIA_TYPE, live=True, headers=_CACHED | signed)
