"""Cookies that live for one redirect chain only (RFC 6265).

Some sites test whether a visitor accepts cookies: they set one, redirect, and expect it back. A
cookie is only sent to the origin that set it, whatever its ``Domain``: same scheme, host and port,
or from plain HTTP to the same host over TLS. Cookies are never stored.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from freshet.crawler.fetch.responses import is_field_value, parse_date
from freshet.crawler.urls import Origin, origin

#: Cookies of one chain, and bytes of the header that sends them.
_MOST: Final = 50
_MOST_BYTES: Final = 8_192


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie that an origin set; it is sent for paths that start with ``path``."""

    origin: Origin
    path: str
    name: str
    value: str
    is_secure: bool = False

    def matches(self, url: str) -> bool:
        """Return whether a request for this URL sends the cookie."""
        to, own, path = origin(url), self.origin, urlsplit(url).path
        fits = path.startswith(self.path) and (
            self.path.endswith("/") or path[len(self.path) :][:1] in {"", "/"}
        )
        is_own = to == own and (to.scheme == "https" or not self.is_secure)
        is_safer = own == Origin("http", to.host, 80) and to == Origin("https", to.host, 443)
        return fits and (is_own or is_safer)


def after(
    cookies: Iterable[Cookie], set_cookie: Iterable[str], url: str, now: float
) -> tuple[Cookie, ...]:
    """Return the cookies of a chain after a response from ``url`` with these Set-Cookie headers."""
    kept = {(each.origin, each.path, each.name): each for each in cookies}
    for text in set_cookie:
        cookie, is_over = _read(text, url, now)
        if cookie is not None:
            kept.pop(key := (cookie.origin, cookie.path, cookie.name), None)
            if not is_over and len(kept) < _MOST:
                kept[key] = cookie
    return tuple(kept.values())


def header(cookies: Iterable[Cookie], url: str) -> str:
    """Return the Cookie header of a request for this URL, or ""."""
    # Of two cookies with one name, the one with the longer path comes first (RFC 6265, section
    # 5.4).
    fitting = sorted((each for each in cookies if each.matches(url)), key=lambda it: -len(it.path))
    text = "; ".join(f"{it.name}={it.value}" if it.name else it.value for it in fitting)
    return text if len(text) <= _MOST_BYTES else ""


def _read(text: str, url: str, now: float) -> tuple[Cookie | None, bool]:
    """Return the cookie of a Set-Cookie header, or None, and whether it is expired."""
    pair, *rest = text.split(";")
    name, equals, value = pair.partition("=")
    name, value = (name.strip(), value.strip()) if equals else ("", name.strip())
    parts = (part.partition("=") for part in rest)
    attributes = {key.strip().lower(): value.strip() for key, _, value in parts}
    place, domain = origin(url), attributes.get("domain", "").lower().removeprefix(".")
    is_of_others = domain and domain != place.host and not place.host.endswith(f".{domain}")
    if not is_field_value(name + value) or is_of_others:
        return None, False
    path = attributes.get("path", "")
    if not path.startswith("/"):
        # The default is the directory of the page (RFC 6265, section 5.1.4).
        path = urlsplit(url).path.rpartition("/")[0] or "/"
    return Cookie(place, path, name, value, "secure" in attributes), _is_over(attributes, now)


def _is_over(attributes: dict[str, str], now: float) -> bool:
    age = attributes.get("max-age", "")
    if age.removeprefix("-").isascii() and age.removeprefix("-").isdigit():
        return age.startswith("-") or not age.strip("0")
    ends_at = parse_date(attributes["expires"]) if "expires" in attributes else None
    return ends_at is not None and ends_at <= now
