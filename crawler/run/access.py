"""Per-site access: headers, cookies, authentication, TLS and proxies from ``[[sites]]``.

Access is looked up for the URL of each request, so a redirect to another origin takes no secrets
along. Secrets are sent over TLS only, except to loopback and where ``match`` begins with
``http://``; and only to the port that ``match`` names, or else to the default port of the scheme.
"""

import logging
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from http.cookiejar import LoadError, MozillaCookieJar
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from freshet.config.settings import SiteSettings
from freshet.config.sites import Sites, names_port, place_of
from freshet.crawler.errors import CrawlError, needs_extra
from freshet.crawler.fetch.addresses import is_this_machine
from freshet.crawler.fetch.transport import Access, is_socks
from freshet.crawler.run.logs import hide, read_secret
from freshet.crawler.urls import Origin, origin
from freshet.storage.errors import trouble

log = logging.getLogger(__name__)

_TLS: Final = ("ca_file", "client_certificate", "client_key")
#: All other keys may be secret: they are sent to the site, or prove the crawler's identity.
_PUBLIC: Final = frozenset({"ca_file", "user_agent_suffix", "proxy"})
_KEYS: Final = (
    "headers",
    "cookies",
    "user",
    "password",
    "bearer",
    *_TLS,
    "user_agent_suffix",
    "proxy",
)
_PAIRS: Final = {
    "password": "user",
    "client_key": "client_certificate",
    "client_certificate": "client_key",
}
#: For each key, the table that sets it, and its value.
_Ruling = dict[str, tuple[SiteSettings, Any]]
_SCHEMES: Final = ("http://", "https://", "socks4://", "socks5://", "socks5h://")


class _Accesses:
    """Makes accesses from rulings; rulings with the same files share one TLS context."""

    def __init__(self, user_agent: str) -> None:
        self._user_agent = user_agent
        self._contexts: dict[tuple[Path | None, ...], ssl.SSLContext] = {}

    def of(self, ruling: _Ruling, public: Access | None = None) -> Access | None:
        """Return the access for a ruling, or None if it changes nothing."""
        values = {key: value for key, (_, value) in ruling.items()}
        files = tuple(values.get(key) for key in _TLS)
        if any(files[:2]) and files not in self._contexts:
            table = next(ruling[key][0] for key in _TLS if key in ruling)
            self._contexts[files] = _tls(f"[[sites]] {table.match}", *files)
        fields, proxy = _fields(values, self._user_agent), values.get("proxy")
        tls = self._contexts.get(files)
        if not (fields or proxy or "cookies" in values or tls):
            return None
        return Access(fields, values.get("cookies"), tls, proxy, public)


def access_at(tables: Sequence[SiteSettings], user_agent: str) -> Callable[[str], Access | None]:
    """Return a function that gives the access of a URL, or None for the usual one.

    The secrets and files that the tables name are read here, once per table.

    Raises:
        CrawlError: a secret, a certificate or a cookie file cannot be read.
    """
    saying = [each for each in tables if any(getattr(each, key) is not None for key in _KEYS)]
    sites, read = Sites(saying), {id(table): _read(table) for table in saying}
    accesses = _Accesses(user_agent)

    @lru_cache(maxsize=4_096)
    def at(place: str) -> Access | None:
        tables = sites.matching(place)
        ruling = _ruling([(it, read[id(it)]) for it in reversed(tables)], origin(place))
        public = accesses.of({key: ruling[key] for key in ruling.keys() & _PUBLIC})
        return accesses.of(ruling, public)

    for table in saying:
        at(place_of(table.match))
    return (lambda url: at(str(origin(url)))) if saying else lambda _url: None


def _ruling(tables: Iterable[tuple[SiteSettings, Mapping[str, Any]]], place: Origin) -> _Ruling:
    """Return the deciding table and value of each key at an origin; later tables win."""
    ruling: _Ruling = {}
    withheld: dict[str, str] = {}
    for table, read in tables:
        why = _withheld(table.match, place)
        values = {key: value for key, value in read.items() if why is None or key in _PUBLIC}
        notice = f"of [[sites]] {table.match} is not sent {why}"
        withheld |= dict.fromkeys(read.keys() - values.keys(), notice)
        for key in {"user", "bearer"} & values.keys():
            # User and bearer exclude each other: the more specific table wins.
            ruling.pop("bearer" if key == "user" else "user", None)
        ruling |= {key: (table, value) for key, value in values.items()}
    for key in withheld.keys() - ruling.keys():
        log.warning("%s: %s %s", place, key, withheld[key])
        # Half of a pair is useless.
        ruling.pop(_PAIRS.get(key, key), None)
    return ruling


def _withheld(match: str, place: Origin) -> str | None:
    """Return why a table's secrets are not sent to an origin, or None if they are."""
    is_plain = place.scheme == "http"
    if is_plain and not match.startswith("http://") and not is_this_machine(place.host):
        return "without TLS"
    if names_port(match) or place.port == (80 if is_plain else 443):
        return None
    return "to another port than the scheme's own; name the port in match"


def _read(table: SiteSettings) -> dict[str, Any]:
    """Return the values of a table, with the secrets and cookies that it names."""
    name = f"[[sites]] {table.match}"
    values = {key: value for key in _KEYS if (value := getattr(table, key)) is not None}
    if table.headers is not None:
        values["headers"] = {k: _secret(f"{name}, headers", v) for k, v in table.headers.items()}
    for key in {"password", "bearer", "proxy"} & values.keys():
        values[key] = _secret(f"{name}, {key}", values[key])
    if table.proxy is not None:
        _check_proxy(name, values["proxy"])
    if table.cookies is not None:
        values["cookies"] = _cookies(name, table.cookies)
    return values


def _fields(values: Mapping[str, Any], user_agent: str) -> dict[str, str]:
    """Return the request headers that the values of an origin add."""
    fields = dict(values.get("headers", {}))
    if "user_agent_suffix" in values:
        fields["User-Agent"] = f"{user_agent} {values['user_agent_suffix']}"
    if "user" in values:
        pair = b64encode(f"{values['user']}:{values.get('password', '')}".encode()).decode()
        hide(pair)
        fields["Authorization"] = f"Basic {pair}"
    if "bearer" in values:
        fields["Authorization"] = f"Bearer {values['bearer']}"
    return fields


def _secret(name: str, secret: SecretStr) -> str:
    found = read_secret(name, secret)
    if not found.isascii() or not found.isprintable():
        raise CrawlError(
            f"{name}: it is not printable ASCII, as a header must be; correct it there"
        )
    hide(found)
    return found


def _check_proxy(name: str, proxy: str) -> None:
    if not proxy.startswith(_SCHEMES):
        raise CrawlError(f"{name}, proxy: it should begin with one of {', '.join(_SCHEMES)}")
    try:
        place = urlsplit(proxy)
        is_whole = bool(place.hostname) and (place.port is not None or not is_socks(proxy))
    except ValueError:
        is_whole = False
    if not is_whole:
        raise CrawlError(
            f"{name}, proxy: it should name a host and a port, such as proxy.example.org:3128"
        )
    if is_socks(proxy) and find_spec("aiohttp_socks") is None:
        raise CrawlError(needs_extra(f"{name}, proxy: SOCKS", "socks"))


def _cookies(name: str, path: Path) -> MozillaCookieJar:
    jar = MozillaCookieJar()
    try:
        jar.load(str(path.expanduser()), ignore_discard=True, ignore_expires=True)
    except (LoadError, UnicodeDecodeError) as error:
        raise CrawlError(
            f"{name}, cookies: {path} is not a cookies.txt of Netscape's form; export it again"
        ) from error
    except OSError as error:
        raise CrawlError(f"{name}, cookies: {trouble(path, error)}") from error
    for cookie in list(jar):
        # Browsers write 0 for a cookie without an expiry date.
        cookie.expires = cookie.expires or None
        if "." not in cookie.domain:
            # http.cookiejar appends .local to names without a dot, such as localhost.
            jar.clear(cookie.domain, cookie.path, cookie.name)
            cookie.domain += ".local"
            jar.set_cookie(cookie)
        hide(cookie.value or "")
    return jar


def _tls(
    name: str, ca_file: Path | None, certificate: Path | None, key: Path | None
) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        if ca_file is not None:
            context.load_verify_locations(ca_file.expanduser())
        if certificate is not None:
            key_file = key and key.expanduser()
            context.load_cert_chain(certificate.expanduser(), key_file, password=_refuse)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(map(str, filter(None, (ca_file, certificate, key))))
        keyless = certificate is not None and key is None and isinstance(error, ssl.SSLError)
        if keyless:
            words = f"{files}: it has no private key; name the key's file, client_key"
        elif isinstance(error, ssl.SSLError):
            words = f"{files}: {_why(error)}; name PEM files that belong together"
        else:
            words = trouble(files, error)
        raise CrawlError(f"{name}: {words}") from error
    return context


def _refuse() -> str:
    raise OSError("the key has a passphrase: give one without")


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
