"""Site lists: from a file or the command line to seeds.

Text, CSV, OPML and sitemaps are distinguished by their content. An invalid entry
becomes a :class:`ListProblem` and the others stay: one bad line must not cost a list.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

# No DTD is read: the first sign of one ends the parsing, before an entity can be declared.
from xml.parsers import expat

from freshet.crawler.errors import UsageError
from freshet.crawler.fetch.bounds import LINE_BYTES, URL_CHARS, XML_LEVELS
from freshet.crawler.urls import canonical, origin, resolve
from freshet.storage.records import StoredSeed

MAX_BYTES = 50 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_URL_COLUMNS = ("url", "site", "host", "link")
_DELIMITERS = "\t;,"
#: ``example.org:8443/path`` has a port and no scheme.
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*):(?!\d+(?:[/?#]|$))")
#: A WHATWG parser would skip slashes in search of a host: "/etc/hosts" is not a site.
_ABSOLUTE = re.compile(r"https?://[^/\\]", re.IGNORECASE)
#: Narrower than the WHATWG's hosts, which may hold commas and quotes: here they are typos.
#: Labels may begin or end with a hyphen, as some in use do; a row of hyphens is not a name.
_HOST = re.compile(r"\[[0-9a-f:]+\]|(?>(?:(?!-+(?:\.|$))[0-9a-z_-]++(?:\.|$))+)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
UNDECODED = re.compile("[\ud800-\udfff]")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ListProblem:
    """A line that gives no seed: its beginning, and a sentence for people."""

    line: int
    text: str
    message: str


@dataclass(frozen=True, slots=True)
class SiteList:
    """The seeds of a list, each page once, and its problems, in the list's order."""

    seeds: tuple[StoredSeed, ...]
    problems: tuple[ListProblem, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """The fields of one site in any format, unchecked."""

    line: int
    text: str
    importance: str = ""
    half_life_hours: str = ""


#: The delimiter of a list in CSV, and the names of its columns in lower case.
Header = tuple[str, tuple[str, ...]]


def url_column(columns: Sequence[str]) -> int:
    """Return the index of the column with the sites."""
    return next(columns.index(name) for name in _URL_COLUMNS if name in columns)


def read_sites(data: bytes, name: str) -> SiteList:
    """Return the seeds of a list: text, CSV with a header, OPML, a sitemap or an index of sitemaps.

    A ``name`` that ends with ``.csv`` or ``.tsv`` demands a header. Never raises for any data.
    """
    if len(data) > MAX_BYTES:
        return _refused(f"larger than {MAX_BYTES // 1024**2} MiB: split the list")
    data = data.removeprefix(_BOM)
    if b"\0" in data:
        return _refused("not a site list: binary data (a text must be in UTF-8)")
    if data.lstrip().startswith(b"<"):
        return _collect(XmlReader().read(data))
    # A longer line is not a URL; the rest of it is refused by itself.
    data = b"".join(line[:LINE_BYTES] + b"\n" for line in data.splitlines())
    # Bytes that are not UTF-8 stay recognisable, so that only their own line is lost.
    text = data.decode("utf-8", "surrogateescape")
    lines = list(io.StringIO(text, newline=None))
    return _collect(_read_lines(lines, name.lower().endswith((".csv", ".tsv"))))


def seeds_from_arguments(args: Sequence[str]) -> SiteList:
    """Return the seeds named on a command line; the line of a problem is a position, from 1."""
    return _collect(_Entry(i, text) for i, text in enumerate(args, 1))


def spellings(text: str) -> list[str]:
    """Return the canonical URLs that ``text`` may mean: without a scheme https, then http.

    Raises:
        UsageError: the text is not a URL.
    """
    sites = seeds_from_arguments([text])
    for problem in sites.problems:
        advice = "write it as example.org or https://example.org/page"
        raise UsageError(f"{problem.text}: {problem.message}; {advice}")
    seed = sites.seeds[0]
    urls = [seed.url] if seed.fallback_url is None else [seed.url, seed.fallback_url]
    return [canonical(url) for url in urls]


def _refused(message: str) -> SiteList:
    return SiteList((), (ListProblem(1, "", message),))


def _collect(entries: Iterable[_Entry | ListProblem]) -> SiteList:
    """Check the entries; of those with one canonical URL the first stays."""
    seeds: dict[str, StoredSeed] = {}
    problems: list[ListProblem] = []
    for entry in entries:
        if isinstance(entry, ListProblem):
            problems.append(entry)
            continue
        try:
            seed = _seed(entry)
        except ValueError as error:
            problems.append(ListProblem(entry.line, _shown(entry.text), str(error)))
            continue
        first = seeds.setdefault(canonical(seed.url), seed)
        seeds[canonical(seed.url)] = replace(
            first,
            importance=max(first.importance, seed.importance),
            half_life_hours=first.half_life_hours or seed.half_life_hours,
        )
    return SiteList(tuple(seeds.values()), tuple(problems))


def _shown(text: str) -> str:
    return UNDECODED.sub("\N{REPLACEMENT CHARACTER}", text.strip()[:_SHOWN])


def _seed(entry: _Entry) -> StoredSeed:
    """Return the seed of an entry; raise ValueError with the sentence of the problem."""
    text = entry.text.strip()
    if UNDECODED.search(text):
        raise ValueError("not UTF-8")
    if not text:
        raise ValueError("no URL")
    if len(text.split()) > 1:
        raise ValueError("more than a URL or host (a blank in a URL is written %20)")
    url, fallback_url = _urls(text)
    importance = _number("importance", entry.importance, above_0=False)
    return StoredSeed(
        text, url, fallback_url,
        importance=1.0 if importance is None else importance,
        half_life_hours=_number("half_life_hours", entry.half_life_hours, above_0=True),
    )  # fmt: skip


def _urls(text: str) -> tuple[str, str | None]:
    """Return the URL of a line, and the http variant where https is a guess."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _url(f"https://{text}"), _url(f"http://{text}")
    if scheme[1].lower() not in {"http", "https"}:
        raise ValueError(f"the scheme {scheme[1]!r} is neither http nor https")
    return _url(text), None


def _url(text: str) -> str:
    href = resolve("", text) if _ABSOLUTE.match(text) else None
    if href is None or len(href) > URL_CHARS or not _HOST.fullmatch(origin(href).host):
        raise ValueError("not a URL or host name")
    return href


def _number(name: str, text: str, *, above_0: bool) -> float | None:
    """Return the number in a cell of the column ``name``; None if it is empty."""
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0) or (above_0 and not number):
        accepted = "above 0" if above_0 else "of at least 0"
        raise ValueError(f"{name} {text.strip()[:40]!r} is not a number {accepted}")
    return number


def _read_lines(lines: Sequence[str], header_expected: bool) -> Iterator[_Entry | ListProblem]:
    header, start = _header(lines)
    first = lines[start] if start < len(lines) else ""
    if header is not None:
        yield from _read_csv(lines, start + 1, header)
    elif header_expected and re.search(r"[\t;,]", _COMMENT.sub("", first)):
        yield ListProblem(start + 1, _shown(first), f"no column {' or '.join(_URL_COLUMNS)}")
    else:
        yield from _read_text(lines)


def csv_header(data: bytes) -> Header | None:
    """Return the header of a list in CSV; None of a text, and of a list without a line."""
    text = data.removeprefix(_BOM).decode("utf-8", "surrogateescape")
    return _header(list(io.StringIO(text, newline=None)))[0]


def _header(lines: Sequence[str]) -> tuple[Header | None, int]:
    """Return the header, if the first line with content is one, and that line's index."""
    said = ((i, line) for i, each in enumerate(lines) if (line := _COMMENT.sub("", each)).strip())
    start, line = next(said, (len(lines), ""))
    delimiter = max(_DELIMITERS, key=line.count)
    try:
        cells = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a field is longer than the library allows
        cells = []
    columns = tuple(cell.strip().lower() for cell in cells)
    is_header = not set(columns).isdisjoint(_URL_COLUMNS)
    return (delimiter, columns) if is_header else None, start


def _read_text(lines: Iterable[str]) -> Iterator[_Entry]:
    for number, line in enumerate(lines, 1):
        if text := _COMMENT.sub("", line).strip():
            yield _Entry(number, text)


def _read_csv(lines: Sequence[str], start: int, header: Header) -> Iterator[_Entry | ListProblem]:
    """Return the rows below a header, which are the lines from index ``start``."""
    delimiter, columns = header
    column = url_column(columns)
    weight, half_life = (
        columns.index(name) if name in columns else len(columns)
        for name in ("importance", "half_life_hours")
    )
    rows = csv.reader(lines[start:], delimiter=delimiter, strict=True)
    while True:
        # A row may have several lines; the first one names it.
        first = start + rows.line_num
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield ListProblem(first + 1, _shown(lines[first]), f"not CSV: {error}")
            continue
        if row is None:
            return
        if any(cell.strip() for cell in row) and not row[0].startswith("#"):
            cells = dict(enumerate(row))
            yield _Entry(
                first + 1, cells.get(column, ""), cells.get(weight, ""), cells.get(half_life, "")
            )


class XmlReader:
    """Reader of the sites in an OPML outline or a sitemap, in the order of the document.

    ``outline`` is called with the line and the attributes of each outline, names in lower case.
    """

    def __init__(self, outline: Callable[[int, dict[str, str]], None] | None = None) -> None:
        self._outline = outline or self._site
        self._found: list[_Entry | ListProblem] = []
        self._open: list[str] = []
        self._loc: list[str] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.CharacterDataHandler = self._data
        self._parser.EndElementHandler = self._end

    def read(self, data: bytes) -> list[_Entry | ListProblem]:
        """Return the sites up to the first error, which is the last problem."""
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            self._fail(f"not well-formed XML: {expat.ErrorString(error.code)}")
        except (LookupError, ValueError) as error:
            # From below, and from expat about the encoding that the document declares.
            self._fail(f"not read: {error}")
        return self._found

    def _fail(self, message: str) -> None:
        self._found.append(ListProblem(self._parser.CurrentLineNumber, "", message))

    def _doctype(self, name: str, *_: object) -> None:
        raise ValueError(f"XML with a document type declaration ({name[:40]})")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition(" ")[2].lower()
        if not self._open and element not in {"opml", "urlset", "sitemapindex"}:
            raise ValueError(f"XML, but neither OPML nor a sitemap: <{element[:40]}>")
        self._open.append(element)
        if len(self._open) > XML_LEVELS:
            raise ValueError("nested too deeply")
        self._loc.clear()
        if element == "outline":
            values = {key.lower(): value.strip() for key, value in attributes.items()}
            self._outline(self._parser.CurrentLineNumber, values)

    def _site(self, line: int, values: dict[str, str]) -> None:
        if url := values.get("htmlurl") or values.get("xmlurl"):
            self._found.append(_Entry(line, url))

    def _data(self, text: str) -> None:
        if self._open[-1] == "loc":
            self._loc.append(text)

    def _end(self, _: str) -> None:
        # An image's or video's loc is of another vocabulary, and no page.
        if self._open.pop() == "loc" and self._open[-1:] in (["url"], ["sitemap"]):
            self._found.append(_Entry(self._parser.CurrentLineNumber, "".join(self._loc)))
