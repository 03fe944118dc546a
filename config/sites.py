"""Settings by URL: of the ``[[sites]]`` tables that set a key, the most specific match wins.

A table matches a host (``example.org``: any scheme and port, with or without ``www.``), a domain
(``*.example.org``: the host and all its subdomains), the URLs of these with a path
(``example.org/news/*``), or a path on any host (``/tag/*``). In paths, ``*`` stands for any
characters. A host is more specific than a domain, a longer domain than a shorter one, and then a
longer path than a shorter one or none. Of two equal matches the first one wins.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from freshet.config.settings import Settings, SiteSettings

_MATCH: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<domain>\*\.)?(?P<host>[^/:]*|\[[^]]*\])"
    r"(?::(?P<port>\d+))?(?P<path>/.*)?"
)
_NOTHING: Final = SiteSettings(match="/*")
#: Keys that need another one. A user may have no password.
_NEEDS: Final = {"password": "user", "zone": "active_hours", "client_key": "client_certificate"}
#: Text with several forms in a URL: an escape, or a character that should be escaped.
_ESCAPED: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^\x00-\x7f]")
_PORTS: Final = {"http": "80", "https": "443"}


def pattern(match: str) -> re.Pattern[str]:
    """Compile a URL pattern: ``*`` is a wildcard; a leading slash means a path on any host."""
    text = _starred(match)
    return re.compile(f"[a-z]+://[^/]+{text}" if match.startswith("/") else text)


def _normal(text: str) -> str:
    """Return a URL or pattern with its escapes as in canonical URLs (RFC 3986, section 6.2.2)."""
    if "%" not in text and text.isascii():
        return text
    return _ESCAPED.sub(lambda found: quote(unquote_to_bytes(found[0]), safe=""), text)


def _starred(match: str) -> str:
    first, *others = map(re.escape, _normal(match).split("*"))
    # Each part matches at its first occurrence only, so matching takes linear time.
    text = "".join([first, *(f"(?>.*?{part})" for part in others[:-1])])
    return text + (f".*{others[-1]}" if others else "")


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with its parsed match; ``nearness`` orders tables by how specific they are."""

    settings: SiteSettings
    scheme: str | None
    port: str | None
    path: re.Pattern[str] | None
    nearness: tuple[int, int, int]


class Sites:
    """The tables of sites, looked up by URL; false if there are none."""

    def __init__(self, tables: Sequence[SiteSettings] = ()) -> None:
        self._hosts = defaultdict[str, list[_Table]](list)
        self._domains = defaultdict[str, list[_Table]](list)
        self._count = len(tables)
        for number, settings in enumerate(tables):
            found = _MATCH.fullmatch(settings.match)
            assert found is not None  # noqa: S101 - the settings were checked
            host, path = _bare(found["host"]), found["path"]
            # A host is more specific than any domain.
            labels = host.count(".") + 1 if host else 0
            near = labels if found["domain"] or not host else 1_000
            table = _Table(
                settings, found["scheme"], found["port"],
                re.compile(_starred(path)) if path else None,
                (near, len((path or "").replace("*", "")), -number),
            )  # fmt: skip
            (self._domains if found["domain"] or not host else self._hosts)[host].append(table)

    def __len__(self) -> int:
        return self._count

    def matching(self, url: str) -> list[SiteSettings]:
        """Return the tables that match an http or https URL, the most specific first."""
        place = _MATCH.fullmatch(url) if self else None
        if place is None:
            return []
        scheme, path = place["scheme"], _normal(place["path"] or "/")
        port = place["port"] or _PORTS[scheme]
        found = [
            table
            for table in self._at(_bare(place["host"]))
            if table.scheme in (None, scheme)
            and table.port in (None, port)
            and (table.path is None or table.path.fullmatch(path))
        ]
        found.sort(key=lambda table: table.nearness, reverse=True)
        return [table.settings for table in found]

    def _at(self, host: str) -> Iterator[_Table]:
        yield from self._hosts.get(host, ())
        name = host
        while name:
            yield from self._domains.get(name, ())
            name = name.partition(".")[2]
        yield from self._domains.get("", ())

    def ruling(self, url: str, key: str) -> SiteSettings | None:
        """Return the table that sets a key at a URL, or None."""
        return next((t for t in self.matching(url) if getattr(t, key) is not None), None)

    def at(self, url: str) -> SiteSettings:
        """Return the settings that apply to a URL, as one table."""
        values: dict[str, Any] = {}
        for table in reversed(self.matching(url)):
            values |= {name: value for name, value in table if value is not None}
        return _NOTHING.model_copy(update=values) if values else _NOTHING


class StoredSite(SiteSettings):
    """A table from the store."""


def with_stored(settings: Settings, stored: Iterable[tuple[str, str, str, float]]) -> Settings:
    """Return the settings with those of a store: match, key, value in JSON, and time.

    Of two equal matches, the one in the file wins.
    """
    own = [each for each in settings.sites if not isinstance(each, StoredSite)]
    tables = [
        StoredSite.model_validate({"match": match, key: json.loads(value)})
        for match, key, value, _ in stored
        if key in SiteSettings.model_fields
    ]
    return settings.model_copy(update={"sites": (*own, *tables)})


def names_port(match: str) -> bool:
    """Return whether a table applies to one port."""
    found = _MATCH.fullmatch(match)
    return found is not None and found["port"] is not None


def place_of(match: str) -> str:
    """Return the start of the URLs that a table of whole hosts matches."""
    found = _MATCH.fullmatch(match)
    assert found is not None  # noqa: S101 - the settings were checked
    port = f":{found['port']}" if found["port"] else ""
    return f"{found['scheme'] or 'https'}://{found['host']}{port}"


def incomplete(tables: Sequence[SiteSettings]) -> str | None:
    """Return a message about the first key that lacks a key it needs, or None.

    The other key may be in another table that matches there, or in one for a part of these hosts.
    """
    sites = Sites(tables)
    for key, other in _NEEDS.items():
        partly = [each for each in tables if getattr(each, key) is not None]
        found = [each for each in tables if getattr(each, other) is not None]
        whole = {each.match for it in found for each in sites.matching(place_of(it.match))}
        for table in partly:
            near = sites.ruling(place_of(table.match), other)
            if near is None and table.match not in whole:
                return f"[[sites]] {table.match}: {key} does nothing without {other}; set both"
    return None


def _bare(host: str) -> str:
    return host.lower().removeprefix("www.")
