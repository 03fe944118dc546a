"""Authentication: by the token in a header, or once as a password, and then by a cookie.

*Invariant.* A browser changes something only by a form of ours, which holds a secret of its session
and says where it stood. Consequence: no other site or service does by a reader's browser.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from hashlib import sha256
from time import monotonic
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from freshet.crawler.bounds import LruCache
from freshet.crawler.errors import Refused
from freshet.crawler.senders import Buckets

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
#: What the forms of a request's session hold; "" where it may change nothing.
CSRF: Final = web.RequestKey("csrf", str)
_AGE_S: Final = 43_200
#: Logins at a time; a further one ends the one that has been idle for the longest.
_MOST: Final = 256
#: Wrong tries of an address at once, and a second.
_TRIES: Final = (5.0, 0.1)
#: The second where the browser came by TLS: no other host and no plain HTTP can set it.
_PLAIN, _SECURE = "freshet", "__Host-freshet"
#: A place of ours: not of another host, which a second slash would begin.
_PLACE: Final = re.compile(r"/(?![/\\])[!-~]*")


class Logins:
    """The sessions of browsers that have shown the token; they end with the process."""

    def __init__(self, token: str, now: Callable[[], float] = monotonic) -> None:
        self._token, self._now, self._key = token, now, secrets.token_bytes()
        self._opened: LruCache[str, float] = LruCache(_MOST)
        self._tries = Buckets(*_TRIES, room=4_096)

    def bears(self, request: web.BaseRequest) -> bool:
        """Return whether a request has the token in its header."""
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        return _same(given.strip(), self._token) and scheme.lower() == "bearer"

    def mark(self, request: web.BaseRequest) -> str:
        """Return what the forms of a request's session hold, "" where it has none."""
        _, name = _cookie(request)
        opened_at = self._opened.use(name)
        if opened_at is None or self._now() - opened_at > _AGE_S:
            return ""
        return hmac.new(self._key, name.encode(), sha256).hexdigest()

    def login(self, request: web.BaseRequest, form: Mapping[str, str]) -> tuple[str, str]:
        """Begin a session; return where to go on, and its Set-Cookie. Raises Refused."""
        if self._tries.level(request.remote, now := self._now()) < 1:
            raise Refused(429, "too many tries from your address; try again in ten seconds")
        if not _same(form.get("token", "").strip(), self._token):
            self._tries.take(request.remote, now)
            raise Refused(403, "Wrong token. It is operation.token in freshet.toml.")
        name = secrets.token_urlsafe(32)
        self._opened[name] = now
        # The browser itself says how it came; a header of a proxy may be anybody's.
        is_secure = request.headers.get(hdrs.ORIGIN, "").startswith("https://")
        cookie = _said(_SECURE if is_secure else _PLAIN, name, _AGE_S)
        return place_of(request.query.get("next", "")), cookie

    def logout(self, request: web.BaseRequest, _form: object) -> tuple[str, str]:
        """End the session of a request; return the same, without its cookie."""
        cookie, name = _cookie(request)
        self._opened.pop(name, None)
        return LOGIN, _said(cookie, "", 0)


def place_of(wanted: str) -> str:
    """Return where a form leads on to: a path of ours."""
    return wanted if _PLACE.fullmatch(wanted) else "/"


def stood_at(request: web.BaseRequest) -> str:
    """Return where a form stood, a path of ours, as its Referer says."""
    said = urlsplit(request.headers.get(hdrs.REFERER, ""))
    return place_of(said._replace(scheme="", netloc="", fragment="").geturl())


def check_form(request: web.BaseRequest, form: Mapping[str, str]) -> None:
    """Raise Refused unless a browser sends a form of ours, and of its session but to log in."""
    # Browsers let no page choose these headers; the first is missing where there is no TLS.
    said = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get(hdrs.ORIGIN, "").partition("://")[2]
    if said != "same-origin" and (said is not None or origin != request.headers[hdrs.HOST]):
        raise Refused(403, "only a page of this server may send this")
    given = form.get("csrf", "")
    if request.path != LOGIN and not (given and _same(given, request[CSRF])):
        raise Refused(403, "this form is not of your session; load it again")


def _cookie(request: web.BaseRequest) -> tuple[str, str]:
    name = _SECURE if _SECURE in request.cookies else _PLAIN
    return name, request.cookies.get(name, "")


def _said(cookie: str, value: str, age_s: int) -> str:
    secure = "; Secure" if cookie == _SECURE else ""
    return f"{cookie}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age_s}{secure}"


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
