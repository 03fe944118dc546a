"""The formats of bodies: their readers, and the choice of a format for a body.

A new format is a :class:`Format` that an entry point of the group ``GROUP`` names, or a module
here with a function ``read``, and an entry in ``FORMATS``. Such a module is imported with the first
body of the format.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final, TypeAlias

from freshet.crawler.fetch.responses import PACKED_MAGIC, media_type, unpacked
from freshet.crawler.reduce.blocks import Blocks
from freshet.crawler.reduce.charset import utf8_of
from freshet.crawler.reduce.tree import holds
from freshet.crawler.reduce.tree_parser import as_scripts_leave
from freshet.entry_points import loaded
from freshet.storage import value
from freshet.storage.records import FetchResult

#: Files with more values are compared by their lines.
MOST_VALUES: Final = 20_000


@value(frozen=True, slots=True)
class Body:
    """The content of a body: ``html``, or text without markup in ``blocks``.

    ``html`` is the page in UTF-8, as received or as the format has written it. It is treated like
    every page: links, main text and document are found in it. Without it ``blocks`` are compared,
    and the document shows ``shown`` (None: the same blocks), as code if ``code`` names a language.
    ``encoding`` is the WHATWG name of the character encoding, None for a format without one.
    """

    encoding: str | None
    html: bytes | None = None
    blocks: Blocks = field(default_factory=Blocks)
    shown: str | None = None
    code: str | None = None
    title: str | None = None
    author: str | None = None

    @property
    def text(self) -> str:
        """The text that the document shows."""
        return "\n\n".join(self.blocks.texts) if self.shown is None else self.shown


#: It takes a body and its Content-Type, and never raises for the contents of a body.
Reader: TypeAlias = Callable[[bytes, str | None], Body]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of bodies: their media types, and the reader of them.

    ``types`` matches their media types in lower case. A body that begins with ``first_bytes`` has
    the format despite its label, and ``label`` becomes its media type. The same holds for a body
    with the label of plain text if ``names`` matches the last segment of its URL's path, in lower
    case. ``version`` is added to the versions of texts and documents: raise it if the reader gives
    another text for the same bytes. ``most_inline`` is the length of a body that is read in the
    event loop's process, which it may block for 100 ms: 0 reads all in the parser's process, which
    has limits of memory and time; None is for readers with work that the counts of
    :func:`freshet.crawler.reduce.tree.is_calm` bound. ``is_binary``: its bytes are not text.
    ``lacks`` names the unreadable part, and the extra that has to be installed for it.
    """

    types: str
    read: Reader
    first_bytes: tuple[bytes, ...] = ()
    label: str = ""
    names: str = ""
    version: str = ""
    most_inline: int | None = None
    is_binary: bool = False
    lacks: tuple[str, str] | None = None


def reads_pdf() -> bool:
    """Return whether the text of PDF can be read: the extra ``pdf`` is installed."""
    return find_spec("pypdfium2") is not None


#: Pages that state something for machines hold one of these.
_STATED: Final = b"//schema.org\0application/ld+json\0"


def _as_it_came(body: bytes, content_type: str | None) -> Body:
    html, encoding = utf8_of(body, content_type)
    html = as_scripts_leave(html)
    if holds(html, _STATED):
        html = _with_statements(html)
    return Body(encoding, html)


def _with_statements(html: bytes) -> bytes:
    from freshet.crawler.reduce.statements import with_statements  # noqa: PLC0415 - few pages do

    return with_statements(html)


@dataclass(frozen=True, slots=True)
class _ReaderIn:
    """The function ``read`` of a module in this folder, which its first call imports."""

    name: str

    @property
    def module(self) -> str:
        return f"{__name__}.{self.name}"

    def __call__(self, body: bytes, content_type: str | None) -> Body:
        found: Body = import_module(self.module).read(body, content_type)
        return found


#: Entry points that give a :class:`Format`; they precede ours.
GROUP: Final = "freshet.formats"
#: The first with matching media types is taken, so the general ones are last. Feeds and sitemaps
#: are recognised earlier by their root element (:mod:`freshet.crawler.reduce.sitemaps`). Bodies
#: longer than ``most_inline`` are read outside of the event loop's process: the worst body of this
#: length takes 100 ms.
FORMATS: Final[list[Format]] = [
    Format("text/html", _as_it_came),
    Format(
        r"text/.*xml.*|application/(?!x-(?:rss|atom)\+)(?:.*\+)?xml",
        _ReaderIn("xml"),
        most_inline=64 * 1024,
    ),
    # With the suffix of RFC 6839, section 3.1.
    Format(r"(?:application|text)/json|.*\+json", _ReaderIn("json")),
    Format(
        r"(?:application|text)/(?:x-)?(?:ndjson|jsonl|json-?lines|json-seq)",
        _ReaderIn("json_lines"),
        most_inline=256 * 1024,
    ),
    # PyYAML takes 40 ms for this length.
    Format(
        r"(?:application|text)/(?:(?:x-|vnd\.)?yaml|.*\+yaml)",
        _ReaderIn("yaml"),
        most_inline=32 * 1024,
    ),
    Format(r"text/(?:x-v)?calendar|application/ics", _ReaderIn("calendar"), most_inline=192 * 1024),
    Format(
        r"application/(?:x-)?pdf",
        _ReaderIn("pdf"),
        first_bytes=(b"%PDF-",),
        label="application/pdf",
        # The reader is compiled code; only the process bounds its work.
        most_inline=0 if reads_pdf() else None,
        version="pdf" if reads_pdf() else "",
        is_binary=True,
        lacks=None if reads_pdf() else ("the text of PDF", "pdf"),
    ),
    Format(
        r"text/(?:x-|vnd\.daringfireball\.|x-web-)?markdown",
        _ReaderIn("markdown"),
        label="text/markdown",
        # llmstxt.org, as it was on 2026-12-01: both are Markdown, mostly labelled as plain text.
        names=r"llms(?:-full)?\.txt|.+\.(?:md|markdown)",
        version="md1",
        # As many open brackets take 60 ms.
        most_inline=8 * 1024,
    ),
    Format(r"text/(?!(?:css|javascript|ecmascript|vtt)$).*|application/toml", _ReaderIn("plain")),
]
_HTML: Final = FORMATS[0]
#: What a process has to load that reads any format.
MODULES: Final = tuple(each.read.module for each in FORMATS if isinstance(each.read, _ReaderIn))


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats, other packages' first; raises BrokenExtension."""
    return *loaded(GROUP).values(), *FORMATS


@lru_cache(maxsize=256)
def _named(name: str) -> Format | None:
    return next((each for each in formats() if re.fullmatch(each.types, name)), None)


def format_of(content_type: str | None) -> Format:
    """Return the format of a Content-Type; HTML where it is missing, or of no format."""
    name = media_type(content_type or "")
    return (_named(name) if name else None) or _HTML


def no_page_type(content_type: str | None) -> str | None:
    """Return the sentence on a media type that pages never have, None for others or without one."""
    name = media_type(content_type or "")
    return None if name is None or _named(name) else f"the server sent {name[:200]}"


@cache
def first_bytes() -> tuple[bytes, ...]:
    """Return the beginnings of bodies that show their format despite the label."""
    return tuple(start for each in formats() for start in each.first_bytes)


def is_mislabelled(body: bytes) -> bool:
    """Return whether a body begins like a format or a packed file, ignoring its label."""
    return body.startswith((*first_bytes(), *PACKED_MAGIC))


def is_relabelled(result: FetchResult) -> bool:
    """Return whether :func:`as_shown` may have something to do."""
    return is_mislabelled(result.body) or _by_name(result) is not None


def _by_name(result: FetchResult) -> Format | None:
    """Return the format that the name of a plain text shows, or None."""
    if not result.body or media_type(result.header("Content-Type") or "") != "text/plain":
        return None
    name = result.url.partition("#")[0].partition("?")[0].rpartition("/")[2].lower()
    return next((it for it in formats() if it.names and re.fullmatch(it.names, name)), None)


def as_shown(result: FetchResult, max_bytes: int) -> FetchResult:
    """Return a response with the label that its first bytes or its name show.

    A packed body is unpacked, to ``max_bytes`` at most. A body with the first bytes of a format
    gets its label, and so does plain text with a name of a format.
    """
    body, headers = unpacked(result.body, max_bytes), result.headers
    shown = next((each for each in formats() if body.startswith(each.first_bytes)), None)
    shown = shown or _by_name(result)
    if shown is not None and format_of(result.header("Content-Type")) is not shown:
        others = ((name, value) for name, value in headers if name.lower() != b"content-type")
        headers = (*others, (b"Content-Type", shown.label.encode()))
    if body is result.body and headers is result.headers:
        return result
    return replace(result, body=body, headers=headers)


def versions() -> str:
    """Return the versions of all formats that have one, for the version of documents."""
    return "".join(f"+{each.version}" for each in formats() if each.version)
