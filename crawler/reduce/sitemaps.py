"""Sitemaps as sites publish them (sitemaps.org protocol, version 0.9).

XML of both kinds and lists of URLs as text are read, plain or gzipped, in slices: memory
holds the entries and a slice, whatever the size. A broken file gives the entries before the
break. Document type declarations are refused: entities that refer to entities grow without bound.
"""

import io
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Literal, TypeAlias
from xml.parsers import expat

from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.bounds import XML_LEVELS
from freshet.crawler.fetch.responses import GZIP_MAGIC, Gzip
from freshet.crawler.reduce.markup import HUB_RELATIONS, ROOT, Blocks, alike, below
from freshet.crawler.reduce.page import collapsed, gathered
from freshet.crawler.urls import canonical, resolve_all, site_key
from freshet.storage.records import Links

# -- gunzip ------------------------------------------------------------------

SLICE_BYTES = 64 * 1024


class TooLong(Exception):
    """More follows than is wanted, which has been given."""


class BrokenFile(Exception):
    """The file is damaged or ends early; the message says where, and the rest has been given."""


def gunzipped(chunks: Iterable[bytes] | bytes, max_bytes: int) -> Iterator[bytes]:
    """Yield the bytes in slices of at most 64 KiB, decoded if they begin like gzip (RFC 1952).

    A kilobyte of gzip may hold a megabyte, so the output is bounded, not the input.

    Raises:
        TooLong: after the first ``max_bytes``, if more follow.
        BrokenFile: where decoding fails, after the bytes that could be decoded.
    """
    left = max_bytes
    for piece in _decoded(_slices(chunks)):
        yield piece[:left]
        left -= len(piece)
        if left < 0:
            raise TooLong


def _slices(chunks: Iterable[bytes] | bytes) -> Iterator[bytes]:
    for chunk in (chunks,) if isinstance(chunks, bytes) else chunks:
        for start in range(0, len(chunk), SLICE_BYTES):
            yield chunk[start : start + SLICE_BYTES]


def _decoded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    while len(head) < len(GZIP_MAGIC) and (piece := next(pieces, b"")):
        head += piece
    whole = chain((head,), pieces)
    if not head.startswith(GZIP_MAGIC):
        yield from whole
        return
    gzip = Gzip()
    try:
        for piece in whole:
            yield from gzip.decode(piece)
    except zlib.error as error:
        raise BrokenFile(f"gzip: {error}") from error
    if not gzip.is_complete:
        raise BrokenFile("gzip: the stream ends early")


_MAX_TOKEN_BYTES = 1024 * 1024
_MAX_LASTMOD_CHARS = 64
_SNIFFED_BYTES = 4096
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ABSOLUTE_URL = re.compile(r"https?://\S", re.IGNORECASE)
# Each alternative is atomic: tried once, so that no input makes the match go back.
_ROOT = re.compile(
    r"(?>(?:\ufeff|\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*>)*)<(?:[\w.-]+:)?([\w.-]+)", re.DOTALL
)


#: The kind of a sitemap's entries: pages, further sitemaps, or pages without dates.
SitemapKind: TypeAlias = Literal["urlset", "index", "text", "unknown"]

_ENTRIES = frozenset({"url", "sitemap"})
_FIELDS = frozenset({"loc", "lastmod"})
_KIND_BY_ROOT: Final[dict[str, SitemapKind]] = {"urlset": "urlset", "sitemapindex": "index"}


@dataclass(frozen=True, slots=True)
class SitemapLimits:
    """The protocol's own bounds; ``max_bytes`` counts after decoding."""

    max_bytes: int = 50 * 1024 * 1024
    max_entries: int = 50_000
    max_url_length: int = 2_048


_PROTOCOL_LIMITS = SitemapLimits()


@dataclass(frozen=True, slots=True)
class Sitemap:
    """The readable part. ``truncated``: a limit was reached; ``problem``: a sentence on the damage.

    ``entries`` are absolute URLs with their dates of last change, as the site wrote them;
    ``rejected`` counts those without an absolute URL of acceptable length.
    """

    kind: SitemapKind
    entries: tuple[tuple[str, str | None], ...] = ()
    truncated: bool = False
    problem: str | None = None
    rejected: int = 0


def parse_sitemap(
    chunks: Iterable[bytes] | bytes, limits: SitemapLimits = _PROTOCOL_LIMITS
) -> Sitemap:
    """Parse a sitemap as it came from the server; nothing in it is an error."""
    entries, truncated, problem = _Entries(limits), False, None
    try:
        _read(gunzipped(chunks, limits.max_bytes), entries)
    except TooLong:
        truncated = True
    except BrokenFile as reason:
        problem = str(reason)
    return Sitemap(entries.kind, tuple(entries.found), truncated, problem, entries.rejected)


def looks_like_sitemap(body_prefix: bytes) -> bool:
    """Return whether a body (gzipped or not) begins like an XML sitemap."""
    return _root(body_prefix) in _KIND_BY_ROOT


def looks_like_feed(body_prefix: bytes) -> bool:
    """Return whether a body (gzipped or not) begins like an RSS or Atom feed."""
    return _root(body_prefix) in {"rss", "feed", "RDF"}


def entry_allowed(entry_url: str, sitemap_url: str, naming_origins: Collection[str]) -> bool:
    """Return whether a sitemap may speak for the site of an entry.

    It may for its own site (:func:`freshet.crawler.urls.site_key`: scheme and ``www.`` aside) and
    for those whose robots.txt names it (sitemaps.org, "Sitemaps & Cross Submits");
    ``naming_origins`` are their origins. The protocol's rule that a sitemap covers only
    the paths below its own is not enforced: sites ignore it.
    """
    try:
        site = site_key(entry_url)
    except ValueError:
        return False
    return site == site_key(sitemap_url) or any(site == site_key(o) for o in naming_origins)


@dataclass(slots=True)
class _Entries:
    """Entries found so far, within the limits."""

    limits: SitemapLimits
    kind: SitemapKind = "unknown"
    found: list[tuple[str, str | None]] = field(default_factory=list)
    rejected: int = 0

    def add(self, url: str, lastmod: str) -> None:
        url, lastmod = url.strip(), lastmod.strip()
        if len(url) > self.limits.max_url_length or not _ABSOLUTE_URL.match(url):
            self.rejected += 1
            if self.rejected > self.limits.max_entries:
                raise TooLong
            return
        if len(self.found) >= self.limits.max_entries:
            raise TooLong
        dated = 0 < len(lastmod) <= _MAX_LASTMOD_CHARS
        self.found.append((url, lastmod if dated else None))


class _Xml:
    """Target of the XML parser for a urlset or sitemapindex, whatever its namespaces.

    The URL of an entry is the ``loc`` directly below it: those of images stand deeper. Text is
    kept only where it is wanted: most of a large sitemap is not.
    """

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries
        self._depth = 0
        self._fields: dict[str, str] | None = None
        self._wanted: str | None = None
        self._text = ""
        self._fed = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._refuse

    def feed(self, piece: bytes, *, last: bool = False) -> None:
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise BrokenFile(f"line {error.lineno}: {expat.ErrorString(error.code)}") from error
        except (LookupError, ValueError) as error:
            raise self._broken(f"the encoding is not supported: {error}") from error
        self._fed += len(piece)
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
            raise self._broken("a tag or comment without end")

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if depth > XML_LEVELS:
            raise self._broken(f"more than {XML_LEVELS} elements inside each other")
        if depth > 3:
            return
        local = name.rpartition(":")[2]
        if depth == 3:
            if self._fields is not None and local in _FIELDS:
                self._wanted = local
                self._text = ""
                self._parser.CharacterDataHandler = self._characters
        elif depth == 2:
            self._fields = {} if local in _ENTRIES else None
        elif local in _KIND_BY_ROOT:
            self._entries.kind = _KIND_BY_ROOT[local]
        else:
            raise self._broken(f"the root element is {local[:40]}, not urlset or sitemapindex")

    def _characters(self, data: str) -> None:
        # One character too many is enough to be rejected.
        if len(self._text) <= self._entries.limits.max_url_length:
            self._text += data if self._text else data.lstrip()

    def _end(self, _name: str) -> None:
        depth = self._depth
        self._depth = depth - 1
        if depth == 3:
            if self._wanted is not None and self._fields is not None:
                self._fields.setdefault(self._wanted, self._text)
                self._wanted = None
                self._parser.CharacterDataHandler = None
        elif depth == 2 and self._fields is not None:
            self._entries.add(self._fields.get("loc", ""), self._fields.get("lastmod", ""))
            self._fields = None

    def _refuse(self, *_declaration: object) -> None:
        raise self._broken("a document type declaration, which is not allowed")

    def _broken(self, what: str) -> BrokenFile:
        return BrokenFile(f"line {self._parser.CurrentLineNumber}: {what}")


def _read_lines(pieces: Iterable[bytes], entries: _Entries) -> None:
    """Read one URL a line."""
    entries.kind = "text"
    pending = b""
    # No character has more than four octets in UTF-8.
    longest = 4 * entries.limits.max_url_length + 1
    for piece in chain(pieces, (b"\n",)):
        *lines, rest = re.split(rb"[\r\n]+", pending + piece)
        pending = rest[:longest]
        for line in lines:
            if (url := line.decode("utf-8", "replace")).strip():
                entries.add(url, "")
    if not entries.found:
        entries.kind = "unknown"
        raise BrokenFile("neither XML nor a list of URLs")


def _read(pieces: Iterator[bytes], entries: _Entries) -> None:
    """Read without a byte order mark and blanks, which XML does not allow at its start."""
    head = b""
    while len(head) <= len(_UTF8_MARK) and (piece := next(pieces, None)) is not None:
        head = (head + piece).removeprefix(_UTF8_MARK).lstrip()
    whole = chain((head,), pieces)
    if not head.startswith((b"<", *_UTF16_MARKS)):
        _read_lines(whole, entries)
        return
    reader = _Xml(entries)
    for piece in whole:
        reader.feed(piece)
    reader.feed(b"", last=True)


def _root(body_prefix: bytes) -> str | None:
    """Return the local name of the root element, if the body begins like XML."""
    try:
        head = next(gunzipped(body_prefix[:_SNIFFED_BYTES], _SNIFFED_BYTES), b"")
    except (BrokenFile, TooLong):
        return None
    encoding = "utf-16" if head.startswith(_UTF16_MARKS) else "utf-8"
    found = _ROOT.match(head.decode(encoding, "ignore"))
    return found[1] if found else None


# -- feeds -------------------------------------------------------------------
# feedparser understands every dialect (RSS, Atom, RDF) at a millisecond a kilobyte, and a few
# kilobytes of malice cost half a second and 40 MB that stay. It is therefore loaded with the first
# feed, and only where :mod:`crawler.reduce.parser_process` can end the process.

#: A longer feed is cut here: it takes about 3 s, and feeds begin with what is new.
MAX_FEED_BYTES: Final = 1024 * 1024
_MAX_ENTRIES: Final = 50_000
_REFERENCE: Final = re.compile(rb"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+))")
_DATE_CHARACTERS: Final = 64
#: The relations of an entry's link that name the entry (RFC 4287, section 4.2.7.2).
_ENTRY_RELATIONS: Final = frozenset({"", "alternate"})


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed's entries in the order of the document.

    ``links`` lead to the entries, with their titles; ``blocks`` has one block per entry: id,
    title and content, without the times of building and updating. ``dated`` are the entries'
    pages (canonical), each with its date as written: of the update, else of publication, else
    None. ``hub_links`` are the feed's links to its hub and to itself.
    """

    links: Links
    blocks: Blocks
    dated: tuple[tuple[str, str | None], ...] = ()
    hub_links: tuple[tuple[str, str], ...] = ()


def read_feed(body: bytes, url: str) -> Feed:
    """Return the entries of a feed; none if the body is not a feed.

    ``url`` is where the feed came from; relative links are resolved against ``xml:base``
    if the feed has it, else against ``url``. No network.
    """
    import feedparser  # noqa: PLC0415  # slow to load, and most crawls meet few feeds

    # It is not told ``url``, against which it would resolve even a guid that is a bare number.
    # A stream: bytes could be taken for the name of a file.
    stream = io.BytesIO(_REFERENCE.sub(_to_a_character, body[:MAX_FEED_BYTES]))
    try:
        feed = feedparser.parse(stream, sanitize_html=False, resolve_relative_uris=False)
    except (ValueError, LookupError, AttributeError, TypeError):
        # It fails at bytes in an encoding that is none, or that has no character there.
        return Feed(Links(), Blocks())
    found = [link for entry in feed.entries for link in _links_of(entry)]
    targets = resolve_all([href for href, *_ in found], url)
    reached = [(t, *link) for t, link in zip(targets, found, strict=True) if t is not None]
    links, _ = gathered(((t, "", title) for t, _, title, *_ in reached), _MAX_ENTRIES)
    dated: dict[str, str | None] = {}
    for target, _, _, date, is_first in reached:
        if is_first:
            dated.setdefault(canonical(target), date)
    texts = tuple(filter(None, map(_text_of, feed.entries[:_MAX_ENTRIES])))
    blocks = alike(texts, "item", below(ROOT, "entry"))
    return Feed(links, blocks, tuple(dated.items()), _hub_links(feed.feed, url))


def _to_a_character(reference: re.Match[bytes]) -> bytes:
    """Return a numeric reference, or one to U+FFFD where feedparser would fail: no character."""
    digits, base = (reference[1], 16) if reference[1] else (reference[2], 10)
    number = int(digits.lstrip(b"0")[:8] or b"0", base)
    is_character = number <= sys.maxunicode and not 0xD800 <= number <= 0xDFFF
    return reference[0] if is_character else b"&#xFFFD"


def _hub_links(said: Mapping[str, Any], url: str) -> tuple[tuple[str, str], ...]:
    links = [link for link in said.get("links", ()) if link.get("rel") in HUB_RELATIONS]
    targets = resolve_all([str(link.get("href", "")) for link in links], url)
    rels = (str(link["rel"]) for link in links)
    return tuple((rel, target) for rel, target in zip(rels, targets, strict=True) if target)


def _text_of(entry: Mapping[str, Any]) -> str:
    said = [part.get("value", "") for part in entry.get("content", ())] or [entry.get("summary")]
    content = " ".join(_plain(str(part)) for part in said if part)
    return collapsed(f"{entry.get('id') or ''} {_title(entry)} {content}")


def _links_of(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None, bool]]:
    """Yield the references of an entry with its title and date; the first is of its page."""
    title, date, is_first = _title(entry), _date(entry), True
    for link in entry.get("links", ()):
        if (link.get("rel") or "") in _ENTRY_RELATIONS and link.get("href"):
            yield str(link["href"]), title, date, is_first
            is_first = False
    # RSS 2.0: a guid is a permalink unless it says otherwise; one that is no URL forgot to.
    guid = str(entry.get("link") or "")
    if is_first and entry.get("guidislink") and _ABSOLUTE_URL.match(guid):
        yield guid, title, date, True


def _date(entry: Mapping[str, Any]) -> str | None:
    """Return the date as written: the library's own value has lost the time zone."""
    # By its own name: the library would give one for the other, with a warning.
    said = (str(dict.get(entry, name) or "") for name in ("updated", "published"))  # type: ignore[call-overload]
    return next((date[:_DATE_CHARACTERS] for date in said if date.strip()), None)


def _title(entry: Mapping[str, Any]) -> str:
    title = str(entry.get("title") or "")
    if "html" in (entry.get("title_detail") or {}).get("type", ""):
        title = _plain(title)
    return collapsed(title)


def _plain(markup: str) -> str:
    return LexborHTMLParser(markup, is_fragment=True).text(separator=" ")
