"""Authentication: by the token in a header, or by a login with it and then a cookie.

*Invariant.* A browser can change something only by a form of this server, which has a secret of the
session and names its origin. Consequence: no other site or service can do so with a user's browser.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from time import monotonic
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from freshet.crawler.errors import Refused
from freshet.crawler.fetch.bounds import LruCache
from freshet.crawler.service.senders import Buckets

Networks: TypeAlias = Sequence[IPv4Network | IPv6Network]
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
#: The secret in the forms of a request's session; "" if the session may change nothing.
CSRF: Final = web.RequestKey("csrf", str)
_AGE_S: Final = 43_200
#: Lifetime of a one-time login key, in seconds.
_KEY_S: Final = 600.0
#: A token given by its hash.
HASHED: Final = re.compile(r"sha256:([0-9a-f]{64})")
#: Concurrent sessions; a further one ends the session that has been idle longest.
_MOST: Final = 256
#: Wrong attempts of an address: at once, and per second.
_TRIES: Final = (5.0, 0.1)
#: Cookie names; the second one is for TLS, where no other host and no plain HTTP can set it.
_PLAIN, _SECURE = "freshet", "__Host-freshet"
#: A path on this server; a second slash would begin another host.
_PLACE: Final = re.compile(r"/(?![/\\])[!-~]*")


class Logins:
    """The sessions of browsers that have logged in; they end with the process."""

    def __init__(
        self, token: str, proxies: Networks = (), now: Callable[[], float] = monotonic
    ) -> None:
        self._hash = _hash(token) if (known := HASHED.fullmatch(token)) is None else known[1]
        self._now, self._key = now, secrets.token_bytes()
        #: The one-time login key, and the end of its validity.
        self._once, self._once_until = "", 0.0
        self._proxies = proxies
        self._opened: LruCache[str, float] = LruCache(_MOST)
        self._tries = Buckets(*_TRIES, room=4_096)

    def bears(self, request: web.BaseRequest) -> bool:
        """Return whether a request has the token in its header; raise Refused."""
        header = request.headers.get(hdrs.AUTHORIZATION, "")
        return self.opens(header, client_of(request, self._proxies))

    def opens(self, header: str, client: str) -> bool:
        """Return whether an Authorization header has the token; raise Refused."""
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "bearer" and self._is_right(client, given)

    def _is_right(self, client: str, given: str) -> bool:
        """Return whether this is the token; count a wrong one of the client.

        Raises:
            Refused: the client has sent too many wrong tokens.
        """
        now = self._now()
        if self._tries.level(client, now) < 1:
            raise Refused(429, "too many attempts from your address; try again in ten seconds")
        if _same(_hash(given.strip()), self._hash):
            return True
        self._tries.take(client, now)
        return False

    def key_for_one(self) -> str:
        """Return a new key for one login, which replaces the previous one."""
        self._once, self._once_until = secrets.token_urlsafe(32), self._now() + _KEY_S
        return self._once

    def _takes_key(self, given: str) -> bool:
        """Return whether this is the one-time key, and invalidate it."""
        is_it = bool(self._once) and _same(given, self._once) and self._now() < self._once_until
        if is_it:
            self._once = ""
        return is_it

    def mark(self, request: web.BaseRequest) -> str:
        """Return the secret for the forms of a request's session, or "" without a session."""
        _, name = _cookie(request)
        opened_at = self._opened.use(name)
        if opened_at is None or self._now() - opened_at > _AGE_S:
            return ""
        return hmac.new(self._key, name.encode(), sha256).hexdigest()

    def login(
        self, request: web.BaseRequest, form: Mapping[str, str], answer: web.StreamResponse
    ) -> None:
        """Begin a session, and set its cookie in the response; raise Refused."""
        given = form.get("token", "")
        client = client_of(request, self._proxies)
        if not (self._takes_key(given) or self._is_right(client, given)):
            raise Refused(
                403,
                "Wrong token: use the token of operation.token. `freshet serve --login` prints a "
                "link for one login within ten minutes.",
            )
        name = secrets.token_urlsafe(32)
        self._opened[name] = self._now()
        # The browser reports its own scheme; a proxy's header can be forged.
        is_secure = request.headers.get(hdrs.ORIGIN, "").startswith("https://")
        answer.set_cookie(
            _SECURE if is_secure else _PLAIN, name, max_age=_AGE_S, secure=is_secure,
            httponly=True, samesite="Strict",
        )  # fmt: skip

    def logout(self, request: web.BaseRequest, answer: web.StreamResponse) -> None:
        """End the session of a request, and delete its cookie."""
        cookie, name = _cookie(request)
        self._opened.pop(name, None)
        answer.del_cookie(cookie, secure=cookie == _SECURE, httponly=True, samesite="Strict")


def client_of(request: web.BaseRequest, proxies: Networks) -> str:
    """Return the client that sent a request, see :func:`client_behind`."""
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
    return client_behind(request.remote or "", forwarded, proxies)


def client_behind(client: str, forwarded: str, proxies: Networks) -> str:
    """Return the address of a client, or for IPv6 the /64 network of a client.

    ``forwarded`` is X-Forwarded-For, in which a proxy names its client; only ``proxies`` are
    trusted.
    """
    for each in reversed(forwarded.split(",")):
        address = _address(client)
        if address is None or not any(address in network for network in proxies):
            break
        client = each.strip() or client
    address = _address(client)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return client if address is None else str(address)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address without the port that some proxies add, or None."""
    port = re.fullmatch(r"\[(.+)\](:\d+)?|([\d.]+):\d+", text)
    with suppress(ValueError):
        found = ip_address((port[1] or port[3]) if port else text)
        return getattr(found, "ipv4_mapped", None) or found
    return None


def is_of_others(request: web.BaseRequest) -> bool:
    """Return whether a page of another origin made a browser send a request.

    Pages cannot set these headers in a browser; the first one is missing without TLS.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in ("same-origin", "none")
    hosts = {request.headers.get(hdrs.HOST)}
    named = (request.headers.get(name) for name in (hdrs.ORIGIN, hdrs.REFERER))
    return any(each is not None and urlsplit(each).netloc not in hosts for each in named)


def place_of(wanted: str) -> str:
    """Return the path to which a form leads on, on this server."""
    return wanted if _PLACE.fullmatch(wanted) else "/"


def stood_at(request: web.BaseRequest) -> str:
    """Return the path of a form's page on this server, by the Referer header."""
    page = urlsplit(request.headers.get(hdrs.REFERER, ""))
    return place_of(page._replace(scheme="", netloc="", fragment="").geturl())


def check_form(request: web.BaseRequest, form: Mapping[str, str]) -> None:
    """Raise Refused unless the form is of this server and, except for a login, of its session."""
    # Pages cannot set these headers in a browser; the first one is missing without TLS.
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get(hdrs.ORIGIN, "").partition("://")[2]
    if site != "same-origin" and (site is not None or origin != request.headers[hdrs.HOST]):
        raise Refused(403, "only a page of this server may send this form")
    given = form.get("csrf", "")
    if request.path != LOGIN and not (given and _same(given, request[CSRF])):
        raise Refused(403, "this form is not of your session; load the page again")


def _cookie(request: web.BaseRequest) -> tuple[str, str]:
    name = _SECURE if _SECURE in request.cookies else _PLAIN
    return name, request.cookies.get(name, "")


def hashed(token: str) -> str:
    """Return the hash of a token, as the settings accept it.

    >>> hashed("a-token-of-24-characters")[:20]
    'sha256:84b9b41d13c3c'
    """
    return f"sha256:{_hash(token)}"


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
