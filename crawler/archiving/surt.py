"""Sort-friendly URLs (SURT): the keys of a CDX index.

Programs that look pages up make the key of what they are asked for, and find what was filed under
the same. So these are the rules of the Internet Archive's canonicaliser, which they all follow;
the crawl's own canonical URLs differ.

>>> surt("https://www.Example.org:443/News/?b=2&a=1#top")
'org,example)/news?a=1&b=2'
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_WWW: Final = re.compile(r"^www\d*\.")
#: Everything printable but blanks, # and %.
_SAFE: Final = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
#: Sessions in a path, as ASP.NET puts them, and in a query.
_PATH_SESSIONS: Final = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.I),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.I),
)
_QUERY_SESSIONS: Final = tuple(
    re.compile(rf"(.*){session}(?:&(.*))?", re.I)
    for session in (
        "jsessionid=[0-9a-z]{32}", "phpsessid=[0-9a-z]{32}", "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}", "cfid=[^&]+&cftoken=[^&]+",
    )
)  # fmt: skip


def surt(url: str) -> str:
    """The key of an http or https URL; of one that cannot be read, the URL itself."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").strip("."), parts.port
    except ValueError:
        return url
    if not host:
        return url
    host = ",".join(reversed(_WWW.sub("", host).split(".")))
    place = host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"
    query = _query(parts.query)
    return f"{place}){_path(parts.path)}{'?' if query else ''}{query}"


def _path(path: str) -> str:
    kept: list[bytes] = []
    for each in _unescaped(path).split(b"/")[1:]:
        if each == b".." and kept:
            kept.pop()
        elif each != b".":
            kept.append(each)
    folders = b"".join(b"/" + each for each in kept[:-1] if each)
    path = _escaped(folders + b"/" + b"".join(kept[-1:])).lower()
    for session in _PATH_SESSIONS:
        if found := session.fullmatch(path):
            path = found[1] + found[2]
    return path.removesuffix("/") or "/"


def _query(query: str) -> str:
    query = _escaped(_unescaped(query))
    for session in _QUERY_SESSIONS:
        if found := session.fullmatch(query):
            query = found[1] + (found[2] or "")
    if len(query) <= 1:
        return query.lower()
    pairs = sorted(each.split("=", 1) for each in query.lower().split("&"))
    return "&".join(map("=".join, pairs))


def _unescaped(text: str) -> bytes:
    """Without percent-encoding, however often it was applied."""
    before, after = text.encode("utf-8", "surrogatepass"), unquote_to_bytes(text)
    while after != before:
        before, after = after, unquote_to_bytes(after)
    return after


def _escaped(data: bytes) -> str:
    return quote_from_bytes(data, safe=_SAFE)
