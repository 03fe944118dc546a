"""The identity of the crawler: signatures of requests (Web Bot Auth), and the field ``From``.

Every crawl loads this module, which is short.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import Field

from freshet.config.settings import Networks, Number, Seconds, SettingsGroup, like
from freshet.crawler.errors import CrawlError
from freshet.crawler.run.rules import key_at
from freshet.crawler.urls import origin

if TYPE_CHECKING:
    from freshet.config.settings import Settings
    from freshet.crawler.extensions.identity.signing import RequestSigner
    from freshet.crawler.fetch.client import Fetcher, Request
    from freshet.crawler.run.network import LoadRules
    from freshet.storage.records import FetchResult

_HTTPS = like(
    r'|https://[^\s"\\?#@/]+(/[^\s"\\?#]*)?',
    "be an https URL without a query, such as "
    "https://example.org/.well-known/http-message-signatures-directory",
)
_MAIL = like(
    r"|[A-Za-z0-9.!$&'*+=_~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+",
    "be a mail address, such as you@example.org",
)
#: The media type of the keys, and where they lie.
MEDIA_TYPE: Final = "application/http-message-signatures-directory+json"
WELL_KNOWN: Final = "/.well-known/http-message-signatures-directory"
#: The most that the draft recommends from ``created`` to ``expires``.
_DAY_S: Final = 86_400


class IdentitySettings(SettingsGroup):
    """``[identity]``: the crawler's identity in requests."""

    sign: bool
    key: str
    directory: Annotated[str, _HTTPS]
    lifetime_s: Annotated[int, Number, Field(ge=10, le=_DAY_S // 2)]
    clock_skew_s: Annotated[Seconds, Field(le=3_600)]
    nonce: bool
    from_address: Annotated[str, _MAIL]
    operator: str
    reason: str
    addresses: Networks

    def silent(self) -> Self:
        """Return settings without an identity: a synthetic web needs no key."""
        return self.model_copy(update={"sign": False, "from_address": ""})


RENDERS: Final = False


def check(settings: Settings) -> None:
    """Refuse to sign without a key and a directory; raises CrawlError."""
    _signer(settings)


def layer(settings: Settings) -> IdentityLayer:
    """Return what adds the fields to the requests of an invocation."""
    return IdentityLayer(settings)


class IdentityLayer:
    """Makes fetchers that add the identity to requests."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def around(self, inner: Fetcher, _others: Fetcher, rules: LoadRules) -> IdentityFetcher:
        """Return a fetcher around another one."""
        return IdentityFetcher(inner, self._settings, rules)

    async def close(self) -> None:
        """Do nothing: no resources are held."""


class IdentityFetcher:
    """Adds ``From`` and a signature to requests, each where a setting asks for it."""

    def __init__(self, inner: Fetcher, settings: Settings, rules: LoadRules) -> None:
        self._inner, self._rules = inner, rules
        self.obey(settings)

    def obey(self, settings: Settings) -> None:
        """Apply the settings from now on; raises CrawlError, as :func:`check`."""
        said = settings.group(IdentitySettings)
        self._signer = _signer(settings)
        self._signs_at = key_at(settings, "sign", said.sign)
        fields = [("From", said.from_address)] if said.from_address else []
        self._always: tuple[tuple[str, str], ...] = tuple(fields)
        says = self._always or self._signer
        # Without an identity a request has no extra cost.
        self.fetch = self._introduced if says else self._inner.fetch

    async def _introduced(self, request: Request) -> FetchResult:
        """Make one request with the fields of its host."""
        fields = self._always
        if self._signer is not None and self._signs_at(request.url):
            authority, now = origin(request.url).netloc, self._rules.now()
            fields += self._signer.fields(authority, now)
        if fields:
            request = replace(request, headers=(*request.headers, *fields))
        return await self._inner.fetch(request)


def _signer(settings: Settings) -> RequestSigner | None:
    """Return the signer of requests, None without signatures; raises CrawlError."""
    said = settings.group(IdentitySettings)
    if not (said.sign or any(each.sign for each in settings.sites)):
        return None
    if not said.directory:
        raise CrawlError(
            "identity.directory: requests are signed only with the URL at which your keys are "
            "published; set it, or identity.sign and sign in [[sites]] to false"
        )
    from freshet.crawler.extensions.identity.keys import key_file, read_keys  # noqa: PLC0415 - few need it
    from freshet.crawler.extensions.identity.signing import RequestSigner  # noqa: PLC0415 - likewise

    keys = read_keys(key_file(said.key))
    return RequestSigner(keys, said.directory, said.lifetime_s, said.clock_skew_s, nonce=said.nonce)
