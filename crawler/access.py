"""Access to sites as their tables say: fields, cookies, authentication, TLS and proxies.

Each request asks for its own URL, so nothing follows a redirect to another origin. What may be
secret is sent by TLS alone, but to this machine, and where the table's match begins with
``http://``.
"""

import logging
import ssl
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache
from http.cookiejar import LoadError, MozillaCookieJar
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from freshet.config.settings import SiteSettings
from freshet.config.sites import Sites
from freshet.crawler.fetch.addresses import is_this_machine
from freshet.crawler.fetch.transport import Access, is_socks
from freshet.crawler.service.logs import hide, read_secret
from freshet.crawler.tally import CrawlError
from freshet.crawler.urls import origin

log = logging.getLogger(__name__)

#: Keys whose values are sent to the site and may be secret.
_SECRET: Final = ("headers", "cookies", "user", "password", "bearer")
_KEYS: Final = (
    *_SECRET, "user_agent_suffix", "proxy", "ca_file", "client_certificate", "client_key",
)  # fmt: skip
_SCHEMES: Final = ("http://", "https://", "socks4://", "socks5://", "socks5h://")


def access_at(tables: Sequence[SiteSettings], user_agent: str) -> Callable[[str], Access | None]:
    """Return a function that gives how requests for a URL differ, None where they do not.

    Raises:
        CrawlError: a secret, a certificate or a file of cookies cannot be read.
    """
    saying = [each for each in tables if any(getattr(each, key) is not None for key in _KEYS)]
    for table in saying:
        _access(table, user_agent)
    sites = Sites(saying)

    @lru_cache(maxsize=4_096)
    def at(place: str) -> Access | None:
        said = sites.at(place)
        unsafe = place.startswith("http://") and not is_this_machine(origin(place).host)
        for key in _SECRET if unsafe else ():
            table = sites.ruling(place, key)
            if table is not None and not table.match.startswith("http://"):
                log.warning(
                    "%s: %s of [[sites]] %s is not sent without TLS", place, key, table.match
                )
                said = said.model_copy(update={key: None})
        return _access(said, user_agent)

    return (lambda url: at(str(origin(url)))) if saying else lambda _url: None


def _access(said: SiteSettings, user_agent: str) -> Access | None:
    """Read what a table names."""
    name = f"[[sites]] {said.match}"
    fields = {k: _secret(f"{name}, headers", v) for k, v in (said.headers or {}).items()}
    if said.user_agent_suffix is not None:
        fields["User-Agent"] = f"{user_agent} {said.user_agent_suffix}"
    if said.user is not None:
        password = "" if said.password is None else _secret(f"{name}, password", said.password)
        pair = b64encode(f"{said.user}:{password}".encode()).decode()
        hide(pair)
        fields["Authorization"] = f"Basic {pair}"
    if said.bearer is not None:
        fields["Authorization"] = f"Bearer {_secret(f'{name}, bearer', said.bearer)}"
    cookies = None if said.cookies is None else _cookies(name, said.cookies)
    proxy = None if said.proxy is None else _proxy(name, said.proxy)
    tls = _tls(name, said)
    if not fields and cookies is None and proxy is None and tls is None:
        return None
    return Access(fields, cookies, tls, proxy)


def _secret(name: str, said: SecretStr) -> str:
    found = read_secret(name, said)
    if not found.isascii() or not found.isprintable():
        raise CrawlError(f"{name}: it is not printable ASCII, as a header must be")
    hide(found)
    return found


def _proxy(name: str, said: SecretStr) -> str:
    proxy = _secret(f"{name}, proxy", said)
    if not proxy.startswith(_SCHEMES):
        raise CrawlError(f"{name}, proxy: it should begin with one of {', '.join(_SCHEMES)}")
    if is_socks(proxy) and find_spec("aiohttp_socks") is None:
        raise CrawlError(f"{name}, proxy: SOCKS needs the extra: pip install 'freshet[socks]'")
    return proxy


def _cookies(name: str, path: Path) -> MozillaCookieJar:
    jar = MozillaCookieJar()
    try:
        jar.load(str(path.expanduser()), ignore_discard=True, ignore_expires=True)
    except LoadError as error:
        raise CrawlError(f"{name}, cookies: {path} is no cookies.txt of Netscape's form") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CrawlError(f"{name}, cookies: {path} cannot be read: {_why(error)}") from error
    for cookie in jar:
        # Browsers write 0 for a cookie that has no end.
        cookie.expires = cookie.expires or None
        hide(cookie.value or "")
    return jar


def _tls(name: str, said: SiteSettings) -> ssl.SSLContext | None:
    if said.ca_file is None and said.client_certificate is None:
        return None
    context = ssl.create_default_context()
    try:
        if said.ca_file is not None:
            context.load_verify_locations(said.ca_file.expanduser())
        if said.client_certificate is not None:
            key = said.client_key and said.client_key.expanduser()
            context.load_cert_chain(said.client_certificate.expanduser(), key, password=_refuse)
    except (OSError, ssl.SSLError) as error:
        named = filter(None, (said.ca_file, said.client_certificate, said.client_key))
        files = ", ".join(map(str, named))
        raise CrawlError(f"{name}: {files}: {_why(error)}") from error
    return context


def _refuse() -> str:
    raise OSError("the key has a passphrase: give one without")


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
