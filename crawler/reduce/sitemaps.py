"""Sitemaps as sites publish them (sitemaps.org protocol, version 0.9).

XML of both kinds, feeds and lists of URLs as text are read, plain or gzipped, in slices: memory
holds the entries and one slice, for any size. Damage costs its entry: XML parsers stop at damage,
so this reader looks for tags only. Document types are skipped:
entities that refer to entities grow without bound.
"""

import io
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html.entities import html5
from itertools import chain
from math import inf
from typing import Any, Final, Literal, TypeAlias

from selectolax.lexbor import LexborHTMLParser

from freshet.crawler.errors import BrokenFile
from freshet.crawler.fetch.bounds import XML_LEVELS
from freshet.crawler.fetch.responses import GZIP_MAGIC, Gzip
from freshet.crawler.reduce.blocks import ROOT, Blocks, alike, below, compared
from freshet.crawler.reduce.charset import xml_decoder
from freshet.crawler.reduce.links import HUB_RELATIONS, gathered
from freshet.crawler.reduce.tree import collapsed
from freshet.crawler.urls import canonical, resolve, resolve_all, site_key
from freshet.storage.records import Links

# -- gunzip ------------------------------------------------------------------

SLICE_BYTES = 64 * 1024


class TooLong(Exception):
    """More follows than is wanted, which has been given."""


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


_MAX_TOKEN_CHARS = 1024 * 1024
_MAX_LASTMOD_CHARS = 64
_SNIFFED_BYTES = 4096
_ABSOLUTE_URL = re.compile(r"https?://\S", re.IGNORECASE)
#: URLs never contain them: such a text was damaged, or read in the wrong encoding.
_BAD_CHARACTER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffd]")
_PROLOGUE = r"(?>(?:\ufeff|\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)*)"
# Each alternative is atomic: tried once, so that no input makes the match go back.
_ROOT = re.compile(rf"{_PROLOGUE}<(?:[\w.-]+:)?([\w.-]+)", re.DOTALL)
#: The beginning of most pages. It needs no decoder, because every encoding has these characters.
_PAGE_ROOT = re.compile(
    rb"\s*+(?:<\?xml[^<>?]*+\?>\s*+)?(?:<!DOCTYPE html[^<>\[]*+>\s*+)?<html[\s>]", re.IGNORECASE
)
_FEED_ROOT = re.compile(r"<(?:[\w.-]+:)?(rss|feed|rdf)[\s>]", re.IGNORECASE)
_ANY_ROOT = re.compile(r"<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|feed|rdf)[\s>]", re.IGNORECASE)
#: An element with only text in it; a tag; or a CDATA section, comment, instruction or declaration,
#: which has no end if no group matches.
_MARKUP = re.compile(
    r"<(?:([A-Za-z_][\w.:-]*+)((?:\s[^<>]*+(?<!/))?)>([^<]*+)</\1\s*>"
    r"|(/?)([A-Za-z_][\w.:-]*+)([^<>]*+)>"
    r"|!\[CDATA\[(?:(.*?)(\]\]>))?|!--(?:.*?(-->))?|\?(?:.*?(\?>))?"
    r"|!DOCTYPE[^<>\[]*+(?:(>)|\[(?:.*?\]\s*(>))?))",
    re.DOTALL | re.IGNORECASE,
)
_LONGEST_REFERENCE = 34
_CHARACTER_REFERENCE = re.compile(r"&(#[xX]?[0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});")
_ATTRIBUTE = re.compile(r"""([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


#: The kind of a sitemap's entries: pages, further sitemaps, the entries of an RSS or Atom feed
#: (sitemaps.org, "Other Sitemap formats"), or pages without dates.
SitemapKind: TypeAlias = Literal["urlset", "index", "feed", "text", "unknown"]

#: The elements of an entry in a feed that have its date, the best first.
_FEED_DATES: Final = ("updated", "modified", "pubdate", "published", "date")
#: The elements that are entries, and the fields directly below them, in lower case.
_ENTRIES: Final = {True: frozenset({"item", "entry"}), False: frozenset({"url", "sitemap"})}
_FIELDS: Final = {
    True: frozenset({"link", "guid", *_FEED_DATES}),
    False: frozenset({"loc", "lastmod"}),
}
#: An entry without any element around it: the tag of the root is damaged.
_KIND_BY_ENTRY: Final[dict[str, SitemapKind]] = {"url": "urlset", "sitemap": "index"}
_KIND_BY_ROOT: Final[dict[str, SitemapKind]] = {
    "urlset": "urlset", "sitemapindex": "index", "rss": "feed", "feed": "feed", "rdf": "feed"
}  # fmt: skip
#: Roots of pages, which are not searched.
_OF_PAGES: Final = frozenset({"html", "head", "body"})
_ROOTS: Final = _OF_PAGES | _KIND_BY_ROOT.keys()


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
    ``rejected`` counts those without an absolute URL of acceptable length, or with a character
    that no URL has.
    """

    kind: SitemapKind
    entries: tuple[tuple[str, str | None], ...] = ()
    truncated: bool = False
    problem: str | None = None
    rejected: int = 0


def parse_sitemap(
    chunks: Iterable[bytes] | bytes, limits: SitemapLimits = _PROTOCOL_LIMITS, url: str = ""
) -> Sitemap:
    """Parse a sitemap as received; its contents never raise an error.

    Relative links of a feed are resolved against ``url``.
    """
    (whole,) = sitemap_slices(chunks, limits, url)
    return whole


def sitemap_slices(
    chunks: Iterable[bytes] | bytes, limits: SitemapLimits = _PROTOCOL_LIMITS, url: str = "",
    *, most_chars: float = inf,
) -> Iterator[Sitemap]:  # fmt: skip
    """Parse a sitemap as :func:`parse_sitemap`; yield it in slices of ``most_chars`` of URLs.

    A slice extends to the end of 64 KiB. The last one has the problem of the whole, and may have no
    entries if it is not the first.
    """
    entries, truncated = _Entries(limits, url), False
    try:
        for _ in _read(gunzipped(chunks, limits.max_bytes), entries):
            if entries.chars >= most_chars:
                yield Sitemap(entries.kind, entries.take())
    except TooLong:
        truncated = True
    except BrokenFile as reason:
        entries.problem = entries.problem or str(reason)
    yield Sitemap(entries.kind, entries.take(), truncated, entries.problem, entries.rejected)


def looks_like(
    body_prefix: bytes, *, is_feed_due: bool = False
) -> Literal["feed", "sitemap"] | None:
    """Return whether a body (gzipped or not) begins like an XML sitemap, or an RSS or Atom feed.

    If a feed is expected, other text may precede it, such as the notice of a program.
    """
    head = None if _PAGE_ROOT.match(body_prefix) else _head(body_prefix)
    found = _ROOT.match(head) if head else None
    if head and is_feed_due and (found is None or found[1].lower() not in _ROOTS):
        found = _FEED_ROOT.search(head)
    kind = _KIND_BY_ROOT.get(found[1].lower()) if found else None
    return "feed" if kind == "feed" else "sitemap" if kind in {"urlset", "index"} else None


def entry_allowed(entry_url: str, sitemap_url: str, naming_origins: Collection[str]) -> bool:
    """Return whether a sitemap may speak for the site of an entry.

    It may for its own site (:func:`freshet.crawler.urls.site_key`: scheme and ``www.`` aside) and
    for sites with a robots.txt that names it (sitemaps.org, "Sitemaps & Cross Submits");
    ``naming_origins`` has their origins. The protocol's rule that a sitemap covers only the paths
    below it is not enforced: sites ignore it.
    """
    try:
        site = site_key(entry_url)
    except ValueError:
        return False
    return site == site_key(sitemap_url) or any(site == site_key(o) for o in naming_origins)


@dataclass(slots=True)
class _Entries:
    """Entries found so far, within the limits, and the first damage; ``url`` is the file's own."""

    limits: SitemapLimits
    url: str = ""
    kind: SitemapKind = "unknown"
    found: list[tuple[str, str | None]] = field(default_factory=list)
    rejected: int = 0
    problem: str | None = None
    chars: int = 0
    count: int = 0

    def add(self, url: str, lastmod: str) -> None:
        url, lastmod = url.strip(), lastmod.strip()
        too_long = len(url) > self.limits.max_url_length
        if too_long or not _ABSOLUTE_URL.match(url) or _BAD_CHARACTER.search(url):
            self.rejected += 1
            if self.rejected > self.limits.max_entries:
                raise TooLong
            return
        if self.count >= self.limits.max_entries:
            raise TooLong
        dated = 0 < len(lastmod) <= _MAX_LASTMOD_CHARS
        self.found.append((url, lastmod if dated else None))
        self.chars += len(url)
        self.count += 1

    def take(self) -> tuple[tuple[str, str | None], ...]:
        """Return the entries since the last call."""
        taken, self.found, self.chars = tuple(self.found), [], 0
        return taken


class _Xml:
    """Reader of a urlset, a sitemapindex or a feed with any namespaces, also after damage.

    Tags are read one by one, so that damage costs its entry only. The URL of an entry is the
    ``loc`` (in a feed, the ``link``) directly below it: URLs of images are deeper. Declarations of
    a document type are not read, so that no entity grows.
    """

    def __init__(self, entries: _Entries) -> None:
        self._entries = entries
        #: The elements that are open, from the root on.
        self._open: list[str] = []
        self._root: str | None = None
        self._is_feed = False
        #: The fields of the entry that is open, its element, and how many are open around it.
        self._fields: dict[str, str] | None = None
        self._entry, self._around = "", 0
        #: The field that is read, and the number of open elements around it.
        self._wanted: str | None = None
        self._outside = 0
        self._text = ""
        #: The lines read so far, and the beginning of a tag that continues in the next piece.
        self._lines = 1
        self._chars = 0
        self._rest = ""

    def feed(self, piece: str) -> None:
        """Read the next piece."""
        text = self._rest + piece
        at, kept = self._read_whole(text)
        if self._wanted is not None:
            self._read_text(text[at:kept])
        self._lines += text.count("\n", 0, kept)
        self._chars += kept
        self._rest = text[kept:]
        if len(self._rest) > _MAX_TOKEN_CHARS:
            raise self._broken("a tag or comment without end")
        if self._entries.kind == "unknown" and self._chars > _SNIFFED_BYTES:
            raise self._rootless()

    def _read_whole(self, text: str) -> tuple[int, int]:
        """Read all markup that ends in a text, and the text before it.

        Return the end of the last markup, and the start of markup that may continue in the next
        piece.
        """
        at = 0
        for found in _MARKUP.finditer(text):
            if self._wanted is not None:
                self._read_text(text[at : found.start()])
            if found.lastindex is None:
                return found.start(), found.start()
            at = found.end()
            damage = self._read_markup(found)
            if damage is not None and self._entries.problem is None:
                line = self._lines + text.count("\n", 0, found.start())
                self._entries.problem = f"line {line}: {damage}"
            if len(self._open) > XML_LEVELS:
                raise self._broken(f"more than {XML_LEVELS} elements inside each other")
        return at, self._unfinished(text, at)

    def end(self) -> None:
        """Take the end of the file: an element that it ended is whole, its text may be not."""
        if self._entries.kind == "unknown":
            raise self._rootless()
        self._wanted = None
        self._close_entry()
        if self._open or self._rest:
            within = f"<{self._open[-1][:40]}>" if self._open else "a tag"
            raise self._broken(f"the file ends within {within}")

    def _read_markup(self, found: re.Match[str]) -> str | None:
        """Read an element, a tag or a section; return its fault."""
        leaf, attributes, said, slash, name, rest, section = found.group(*range(1, 8))
        damage = None
        if leaf is not None:
            if self._wanted is not None or not self._leaf(leaf, attributes, said):
                damage = self._start(leaf, attributes)
                self._read_text(said)
                self._end(leaf)
        elif slash:
            damage = self._end(name)
        elif name is not None:
            damage = self._start(name, rest)
            if rest.endswith("/"):
                self._end(name)
        elif section and self._wanted is not None:
            self._take(section)
        return damage

    def _unfinished(self, text: str, at: int) -> int:
        """Return where a tag or a reference begins that may go on in the next piece."""
        if (tag := text.rfind("<", at)) >= 0:
            return tag
        if self._wanted is not None:
            reference = text.rfind("&", max(at, len(text) - _LONGEST_REFERENCE))
            if reference >= 0 and ";" not in text[reference:]:
                return reference
        return len(text)

    def _leaf(self, name: str, attributes: str, text: str) -> bool:
        """Read an element with only text in it, if it is a field or unwanted; most are."""
        local = _local(name)
        if self._entries.kind == "unknown" or local in _ENTRIES[self._is_feed]:
            return False
        is_direct = self._fields is not None and len(self._open) == self._around + 1
        if is_direct and local in _FIELDS[self._is_feed]:
            self._start_field(local, attributes)
            if self._wanted is not None:
                self._read_text(text)
                self._close_field()
        return True

    def _start(self, name: str, attributes: str) -> str | None:
        """Open an element; return its fault."""
        local = _local(name)
        entries, damage = self._entries, None
        if entries.kind == "unknown" and (damage := self._take_root(local)) is not None:
            return damage
        if local in _ENTRIES[self._is_feed] and (self._fields is None or name == self._entry):
            damage = self._start_entry(name, attributes)
        elif self._fields is not None and local in _FIELDS[self._is_feed]:
            damage = self._start_known_field(local, attributes)
        self._open.append(name)
        if len(self._open) > XML_LEVELS:
            return f"more than {XML_LEVELS} elements inside each other"
        return damage

    def _start_entry(self, name: str, attributes: str) -> str | None:
        """Begin an entry; one that is open ends, which is wrong."""
        damage = None
        if self._fields is not None:
            damage = f"<{name[:40]}> is not closed"
            self._close_entry()
        self._fields, self._entry, self._around = {}, name, len(self._open)
        if self._is_feed:
            self._fields["guid"] = _attributes(attributes).get("about", "")
        return damage

    def _start_known_field(self, local: str, attributes: str) -> str | None:
        """Begin a field that is directly in its entry; another open one ends, which is wrong."""
        damage = None
        if self._wanted is not None and local != self._wanted:
            damage = f"<{self._open[-1][:40]}> is not closed"
            del self._open[self._outside :]
            self._close_field()
        if self._wanted is None and len(self._open) == self._around + 1:
            self._start_field(local, attributes)
        return damage

    def _take_root(self, local: str) -> str | None:
        """Take the kind of the root; return its fault."""
        kind = _KIND_BY_ROOT.get(local) or _KIND_BY_ENTRY.get(local)
        self._root = self._root or local
        if local in _OF_PAGES:
            raise self._rootless()
        if kind is None:
            return f"<{local[:40]}> before the sitemap"
        self._entries.kind, self._is_feed = kind, kind == "feed"
        return None

    def _start_field(self, local: str, attributes: str) -> None:
        said = _attributes(attributes) if self._is_feed and attributes else {}
        if "href" in said:
            # Atom (RFC 4287, section 4.2.7): the text of the element has no meaning.
            if said.get("rel", "") in _ENTRY_RELATIONS:
                self._set("link", said["href"])
        elif said.get("ispermalink", "").strip().lower() != "false":
            self._wanted, self._outside, self._text = local, len(self._open), ""

    def _end(self, name: str) -> str | None:
        """Close an element and its open descendants; return the fault."""
        damage = None
        if self._open and self._open[-1] == name:
            self._open.pop()
        elif name in self._open:
            damage = f"<{self._open[-1][:40]}> is not closed"
            while self._open.pop() != name:
                pass
        elif self._entries.kind == "unknown":
            return None
        else:
            return f"</{name[:40]}> closes no element"
        if self._wanted is not None and len(self._open) <= self._outside:
            self._close_field()
        if self._fields is not None and len(self._open) <= self._around:
            self._close_entry()
        return damage

    def _read_text(self, text: str) -> None:
        # A "<" that does not begin a tag has damaged the text.
        whole = text.replace("<", "\ufffd") if "<" in text else text
        self._take(_with_characters(whole) if "&" in text else whole)

    def _take(self, text: str) -> None:
        # One character too many is enough to be rejected.
        if len(self._text) <= self._entries.limits.max_url_length:
            self._text += text if self._text else text.lstrip()

    def _close_field(self) -> None:
        if self._wanted is not None:
            self._set(self._wanted, self._text)
        self._wanted = None

    def _set(self, name: str, text: str) -> None:
        if self._fields is not None and not self._fields.get(name):
            self._fields[name] = text

    def _close_entry(self) -> None:
        fields, self._fields, self._wanted = self._fields, None, None
        if fields is None:
            return
        del self._open[self._around :]
        if self._is_feed:
            link = (fields.get("link") or fields.get("guid", "")).strip()
            date = next((fields[name] for name in _FEED_DATES if fields.get(name)), "")
            self._entries.add(resolve(link, self._entries.url) or link, date)
        else:
            self._entries.add(fields.get("loc", ""), fields.get("lastmod", ""))

    def _rootless(self) -> BrokenFile:
        # The fault is the lack of a root, not the text before it.
        self._entries.problem = None
        root = (self._root or "missing")[:40]
        return self._broken(f"the root element is {root}, neither of a sitemap nor of a feed")

    def _broken(self, what: str) -> BrokenFile:
        return BrokenFile(f"line {self._lines}: {what}")


@lru_cache(maxsize=256)
def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag by their local names in lower case."""
    found = _ATTRIBUTE.findall(text)
    return {name.lower(): _with_characters(double or single) for name, double, single in found}


def _with_characters(text: str) -> str:
    """Replace references to characters; others stay, as does an ampersand by itself."""
    return _CHARACTER_REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
    said = reference[1]
    if not said.startswith("#"):
        return html5.get(f"{said};", reference[0])
    digits, base = (said[2:], 16) if said[1] in "xX" else (said[1:], 10)
    try:
        number = int(digits, base)
    except ValueError:
        return reference[0]
    is_one = 0 < number <= sys.maxunicode and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_one else "\ufffd"


def _read_lines(pieces: Iterable[str], entries: _Entries) -> Iterator[None]:
    """Read one URL a line, a piece at a time."""
    entries.kind = "text"
    pending, longest = "", entries.limits.max_url_length + 1
    for piece in pieces:
        *lines, rest = re.split(r"[\r\n]+", pending + piece)
        pending = rest.lstrip()[:longest]
        for line in lines:
            if line.strip():
                entries.add(line, "")
        yield
    if not entries.count:
        entries.kind = "unknown"
        raise BrokenFile("neither XML nor a list of URLs")


def _read(pieces: Iterator[bytes], entries: _Entries) -> Iterator[None]:
    """Read XML, which other text may precede, or lines, a piece at a time."""
    head, ending = _beginning(pieces)
    decoder = xml_decoder(head)
    start = decoder.decode(head).lstrip("\ufeff \t\r\n")
    texts = chain((start,), map(decoder.decode, pieces))
    if start.startswith("<") or _ANY_ROOT.search(start):
        reader = _Xml(entries)
        for text in texts:
            reader.feed(text)
            yield
        if ending is None:
            reader.end()
    else:
        yield from _read_lines(chain(texts, ("\n",) if ending is None else ()), entries)
    if ending is not None:
        raise ending


def _beginning(pieces: Iterator[bytes]) -> tuple[bytes, BrokenFile | TooLong | None]:
    """Return the first bytes without white space before them, and why no more follow, if so."""
    head = b""
    try:
        while len(head) < _SNIFFED_BYTES and (piece := next(pieces, None)) is not None:
            head = head + piece if head else piece.lstrip()
    except (BrokenFile, TooLong) as early:
        return head, early
    return head, None


def _head(body_prefix: bytes) -> str:
    """Return the first characters of a body, unpacked; an empty text if it is damaged."""
    try:
        head = next(gunzipped(body_prefix[:_SNIFFED_BYTES], _SNIFFED_BYTES), b"")
    except (BrokenFile, TooLong):
        return ""
    return xml_decoder(head).decode(head)


# -- feeds -------------------------------------------------------------------
# feedparser understands every dialect (RSS, Atom, RDF) at a millisecond a kilobyte, and a few
# kilobytes of malice cost half a second and 40 MB that stay. It is therefore loaded with the first
# feed, and only where :mod:`crawler.reduce.parser_process` can end the process.

#: A longer feed is cut here: it takes about 3 s, and feeds begin with the newest entries.
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
    """Return the entries of a feed; empty if the body is not a feed.

    ``url`` is the feed's URL; relative links are resolved against ``xml:base``
    if the feed has it, else against ``url``. No network.
    """
    import feedparser  # noqa: PLC0415  # slow to load, and most crawls meet few feeds

    # It does not get ``url``, against which it would resolve even a guid that is a bare number.
    # A stream: bytes could be taken for the name of a file.
    stream = io.BytesIO(_REFERENCE.sub(_to_a_character, body[:MAX_FEED_BYTES]))
    try:
        feed = feedparser.parse(stream, sanitize_html=False, resolve_relative_uris=False)
    except (ValueError, LookupError, AttributeError, TypeError):
        # It fails at an unknown encoding, and at bytes that are invalid in the encoding.
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
    return collapsed(compared(f"{entry.get('id') or ''} {_title(entry)} {content}"))


def _links_of(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None, bool]]:
    """Yield the references of an entry with its title and date; the first is of its page."""
    title, date, is_first = _title(entry), _date(entry), True
    for link in entry.get("links", ()):
        if (link.get("rel") or "") in _ENTRY_RELATIONS and link.get("href"):
            yield str(link["href"]), title, date, is_first
            is_first = False
    # RSS 2.0: a guid is a permalink unless it states otherwise; one that is not a URL should have.
    guid = str(entry.get("link") or "")
    if is_first and entry.get("guidislink") and _ABSOLUTE_URL.match(guid):
        yield guid, title, date, True


def _date(entry: Mapping[str, Any]) -> str | None:
    """Return the date as written: the library's own value has lost the time zone."""
    # By its exact name: the library would give one for the other, with a warning.
    said = (str(dict.get(entry, name) or "") for name in ("updated", "published"))  # type: ignore[call-overload]
    return next((date[:_DATE_CHARACTERS] for date in said if date.strip()), None)


def _title(entry: Mapping[str, Any]) -> str:
    title = str(entry.get("title") or "")
    if "html" in (entry.get("title_detail") or {}).get("type", ""):
        title = _plain(title)
    return collapsed(title)


def _plain(markup: str) -> str:
    return LexborHTMLParser(markup, is_fragment=True).text(separator=" ")
