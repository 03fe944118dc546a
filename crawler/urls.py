"""URLs: resolution, canonical form, host, site and registrable domain.

``ada_url`` parses by the WHATWG URL standard (https://url.spec.whatwg.org/), because pages are
written for browsers.

Each page has two forms of its URL: the *fetch URL*, resolved as the page wrote it, is requested;
its *canonical* form is the page's identity and is not requested.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from ada_url import join_url, parse_url
from publicsuffixlist import PublicSuffixList

from freshet.storage.identity import identity

_DEFAULT_PORTS = {"http": 80, "https": 443}

_NOT_FOLLOWED = re.compile(r"[\x00-\x20]*(?:javascript|mailto|tel|data):", re.IGNORECASE)
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port of an http or https URL (RFC 6454).

    ``host`` is in lower case and ASCII, an IPv6 address in brackets; ``port`` is explicit.
    ``str()`` omits the default port: ``https://example.org:8443``.
    """

    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        """The host, and the port unless it is the scheme's default."""
        if self.port == _DEFAULT_PORTS[self.scheme]:
            return self.host
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}"


def resolve(reference: str, base: str) -> str | None:
    """Return the WHATWG href of a reference found at ``base``, or None if parsing fails.

    Any scheme is allowed; credentials and fragment are kept.
    """
    try:
        return join_url(base, reference)
    except ValueError:
        return None


#: URLs in normal form, and references that can be appended unchanged to the origin, the folder, or
#: the base without its fragment.
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN = re.compile(
    rf"(?:(https?://(?:(?:(?!xn--)[a-z0-9-]+\.)+(?!xn--)[a-z]{{2,}}|{_OCTET}(?:\.{_OCTET}){{3}})"
    r"(?::(?:[1-9][0-9]{3}|[1-5][0-9]{4}))?)?(/))?"
    r"(?:(?:[\w-][\w.~-]*/)*[\w-][\w.~-]*/?(?:\?[\w.~=&;%+,-]*)?)?(?:#[\w.~=&;%+,:()-]*)?",
    re.ASCII,
)


class Base:
    """The URL against which the references of a page are resolved; ``home`` is its parsed form."""

    def __init__(self, url: str) -> None:
        self._url = url
        found = _PLAIN.fullmatch(url)
        if found and found[1]:
            self.home, self._origin, self._is_http = url.partition("#")[0], found[1], True
        else:
            self.home = resolve("", url) or ""
            self._origin = "/".join(self.home.split("/", 3)[:3])
            self._is_http = is_http(self.home)
        self._folder = _directory(self.home)

    @property
    def parts(self) -> tuple[str, str, str]:
        """The URL without its fragment, its folder and its origin.

        Plain references are appended to these. They are empty if the URL is not http or https.
        """
        return (self.home, self._folder, self._origin) if self._is_http else ("", "", "")

    def plain(self, reference: str) -> str | None:
        """Return the result of :func:`resolve` if the reference is plain, else None."""
        found = _PLAIN.fullmatch(reference) if self._is_http else None
        if found is None:
            return None
        if found[2]:
            return reference if found[1] else self._origin + reference
        is_path = reference and reference[0] != "#"
        return (self._folder if is_path else self.home) + reference

    def http_url(self, reference: str) -> str | None:
        """Return the URL of the page that a reference leads to, without its fragment."""
        if not reference or reference.isspace():
            return None
        url = self.plain(reference)
        if url is None:
            url = resolve(reference, self._url)
            if url is None or not is_http(url):
                return None
        return url.partition("#")[0]

    def resolve(self, reference: str) -> str | None:
        """Return the result of :func:`resolve`, faster for most references."""
        url = self.plain(reference)
        return resolve(reference, self._url) if url is None else url


def is_http(url: str) -> bool:
    """Return whether the crawler can fetch a resolved URL."""
    return url.startswith(("https://", "http://"))


def without_fragment(url: str) -> str:
    """Return the URL without its fragment, as a server sees it."""
    return url.partition("#")[0]


def without_credentials(url: str) -> str:
    """Return a resolved http or https URL without user and password."""
    if "@" not in url:
        return url
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return (
        url if "@" not in authority else f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"
    )


@lru_cache(maxsize=8192)
def canonical(url: str) -> str:
    """Return the page's identity (:func:`.identity.identity`); idempotent.

    Raises as :func:`origin`.
    """
    return identity(_href(url))


@lru_cache(maxsize=8192)
def canonical_of_resolved(url: str) -> str:
    """Return :func:`canonical` of an http or https URL returned by :func:`resolve`."""
    return identity(url)


def _href(url: str) -> str:
    try:
        href = parse_url(url, attributes=("href",))["href"]
    except ValueError:
        href = ""
    if not is_http(href):
        raise ValueError(f"not an absolute http or https URL: {url[:200]!r}")
    return href


def resolve_all(hrefs: Sequence[str], base: str) -> list[str | None]:
    """Resolve a page's hrefs to http(s) URLs without fragments; others are None.

    Equal to :func:`resolve` on each, but faster: a page repeats hrefs with other fragments, and the
    pages of a site repeat each other's hrefs.
    """
    place = base_at(base)
    home = place.home or base
    directory = _directory(home)
    heads = [reference_head(href) if "#" in href else href for href in hrefs]
    found = {
        head: place.plain(head) or _followed(head, home, directory) for head in dict.fromkeys(heads)
    }
    return [found[head] for head in heads]


# A page is read in two steps, which share the base.
@lru_cache(maxsize=64)
def base_at(url: str) -> "Base":
    """Return the cached base of a URL."""
    return Base(url)


def reference_head(href: str) -> str:
    """Return the reference without its fragment, unless the fragment protects a preceding blank."""
    head = href.partition("#")[0]
    return href if head and head[-1] <= " " else head


def _directory(url: str) -> str:
    """Return the URL up to the last '/' of its path, the base of relative paths."""
    if not is_http(url):
        return url
    path = url.partition("#")[0].partition("?")[0]
    return path[: path.rindex("/") + 1]


def _followed(href: str, base: str, directory: str) -> str | None:
    if _NOT_FOLLOWED.match(href):
        return None
    url = _resolve_path(href, directory) if _is_path(href) else resolve(href, base)
    return without_fragment(url) if url is not None and is_http(url) else None


def _is_path(reference: str) -> bool:
    """Return whether a reference surely replaces the last segment of its base.

    An empty reference, a query, and a scheme without '//' (``https:?page=2`` is relative) do not.
    """
    first = reference[:1]
    return (first.isalnum() or first in {"/", "."}) and ":" not in reference


_resolve_path = lru_cache(maxsize=8192)(resolve)


# A visit uses the same URLs several times.
@lru_cache(maxsize=256)
def origin(url: str) -> Origin:
    """Return the origin of an http or https URL.

    Raises:
        ValueError: ``url`` is not an absolute http or https URL.
    """
    try:
        # Cut the URL at its path: URLs are many but origins few, so the cache nearly always hits.
        return _parse_origin("/".join(url.split("/", 3)[:3]))
    except ValueError:
        return _parse_origin(url)


@lru_cache(maxsize=4096)
def _parse_origin(url: str) -> Origin:
    parts = parse_url(_href(url), attributes=("protocol", "hostname", "port"))
    scheme = parts["protocol"].removesuffix(":")
    return Origin(scheme, parts["hostname"], int(parts["port"] or _DEFAULT_PORTS[scheme]))


def robots_url(place: Origin) -> str:
    """Return the URL of an origin's robots.txt (RFC 9309, section 2.3)."""
    return f"{place}/robots.txt"


@lru_cache(maxsize=256)
def site_key(url: str) -> str:
    """Return the site of a URL: http and https, with or without ``www.``, count as one.

    The form is ``example.org``, or ``example.org:8443`` if the port is not the scheme's default.
    Raises as :func:`origin`.
    """
    try:
        return _site_of("/".join(url.split("/", 3)[:3]))
    except ValueError:
        return _site_of(url)


@lru_cache(maxsize=4096)
def _site_of(url: str) -> str:
    netloc = _parse_origin(url).netloc
    bare = netloc.removeprefix("www.")
    return bare if "." in bare else netloc


@lru_cache(maxsize=8192)
def registrable_domain(host: str) -> str:
    """Return the public suffix of a host name with one more label (publicsuffix.org).

    IP addresses, single labels and public suffixes are returned unchanged. Private suffixes
    (``github.io``) count, because their subdomains belong to different people.
    """
    if host.startswith("[") or ":" in host or _IPV4.fullmatch(host):
        return host
    return _public_suffixes().privatesuffix(host) or host


@cache
def _public_suffixes() -> PublicSuffixList:
    return PublicSuffixList()


# -- sessions ----------------------------------------------------------------

#: Names that frameworks use only for sessions.
_SESSION_NAME = re.compile(
    r"phpsessid|jsessionid|aspsessionid\w*|asp\.net_sessionid|cfid|cftoken|oscsid|zenid|xtcsid",
    re.IGNORECASE,
)
#: Names that may mean a session, a story or a conference: the value decides.
_MAYBE_SESSION_NAME = re.compile(r"s|sid|sess|sessid|session|session[-_]?(?:id|key)", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?=[^/]*\d)[0-9A-Za-z]{16,}|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
)


def is_token(value: str) -> bool:
    """Return whether a part of a URL looks like a generated id."""
    return _TOKEN.fullmatch(value) is not None


def is_session(name: str, value: str) -> bool:
    """Return whether a parameter of a URL is a session id."""
    if not value:
        return False
    if _SESSION_NAME.fullmatch(name):
        return True
    return bool(_MAYBE_SESSION_NAME.fullmatch(name) and _TOKEN.fullmatch(value))
