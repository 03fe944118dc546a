"""Documents: a page for readers, with its main content and its metadata.

A document is made from a stored body when it is read, of the pieces with the compared words
(:mod:`freshet.crawler.reduce.main_text`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape, unescape
from itertools import chain
from typing import Any, Final, NamedTuple

from freshet.crawler.reduce.content import choice_of, title_of
from freshet.crawler.reduce.formats import Body, format_of, versions
from freshet.crawler.reduce.links import PageHead
from freshet.crawler.reduce.main_text import written
from freshet.crawler.reduce.page import chosen_lately, refuse_depth, tree_shown
from freshet.crawler.reduce.pieces import HEADINGS, Piece
from freshet.crawler.reduce.plain_text import plain_text
from freshet.crawler.reduce.tree import NO_HINTS, PLACES, SelectorHints, Tree

#: Version of the documents of given bytes. Raise it with every change that alters some document.
DOCUMENT_VERSION: Final = f"17{versions()}"


@dataclass(frozen=True, slots=True)
class Document:
    """The main content of one version of a page, with the page's metadata.

    ``language`` is a BCP 47 tag, the dates are ISO 8601 (a date or a date-time). ``headings`` is
    the outline: level and text; ``anchors`` has for each the id of an element there, or "".
    ``blocks`` has the Markdown of each paragraph, heading, list, table, code block, quote and
    image; media of another address are links. ``html`` is the same content with
    structural elements only. All references are absolute.
    """

    title: str | None = None
    description: str | None = None
    language: str | None = None
    author: str | None = None
    published_at: str | None = None
    modified_at: str | None = None
    canonical_url: str | None = None
    headings: tuple[tuple[int, str], ...] = ()
    anchors: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    html: str = ""

    @property
    def markdown(self) -> str:
        """The main content as Markdown."""
        return "\n\n".join(self.blocks)

    @property
    def text(self) -> str:
        """The main content without any markup: blocks are paragraphs, cells end with a tab."""
        return plain_text(self.html)


def document(
    body: bytes,
    url: str,
    content_type: str | None,
    *,
    hints: SelectorHints = NO_HINTS,
    deepest: int | None = None,
) -> Document:
    """Return the document of a page from ``url``; raises as :func:`.page.parse`.

    ``hints`` select its content in HTML: on a page that has elements to include, it is all that
    they hold.
    """
    return content_of(body, url, content_type, hints=hints, deepest=deepest).document


class MadeDocument(NamedTuple):
    """A document, with its tree and pieces, which are missing without markup."""

    document: Document
    tree: Tree | None = None
    pieces: Sequence[Piece] = ()


def content_of(
    body: bytes,
    url: str,
    content_type: str | None,
    *,
    hints: SelectorHints = NO_HINTS,
    deepest: int | None = None,
) -> MadeDocument:
    """Return the document of a page with its tree and pieces, as :func:`document`."""
    chosen = chosen_lately(body, content_type, hints)
    if chosen is None:
        found = format_of(content_type).read(body, content_type)
        if found.html is None:
            return MadeDocument(_plain(found))
        refuse_depth(found.html, deepest)
        tree, shown = tree_shown(found.html)
        del found
        tree, pieces, _ = choice_of(tree, shown, hints)
    else:
        tree, pieces = chosen
    about, head = _About(tree), PageHead.of(tree, url)
    kept, blocks, htmls = written(tree, pieces, head.base_url)
    headings = [
        (int(piece.kind[1]), plain_text(html), _anchor(tree, piece.holder))
        for piece, html in zip(kept, htmls, strict=True)
        if piece.kind in HEADINGS
    ]
    made = Document(
        title=about.title(),
        description=about.meta("description", "og:description", "twitter:description")
        or about.said("description"),
        language=about.language(),
        author=about.author(),
        published_at=about.date("datePublished", *_PUBLISHED),
        modified_at=about.date("dateModified", *_MODIFIED),
        canonical_url=head.canonical(),
        headings=tuple((level, text) for level, text, _ in headings),
        anchors=tuple(anchor for _, _, anchor in headings),
        blocks=tuple(blocks),
        html="\n".join(htmls),
    )
    return MadeDocument(made, tree, pieces)


#: Nodes before a heading among which its anchor may be.
_ANCHOR_BEFORE: Final = 8


def _anchor(tree: Tree, heading: int) -> str:
    """Return the id to which a link to a heading leads, or "".

    It is the id of the heading, of an element in it, or of one before it without text between: a
    section that it begins, or an empty element.
    """
    inside = range(heading, tree.end[heading])
    before = range(heading - 1, max(heading - _ANCHOR_BEFORE, tree.body), -1)
    for node in chain(inside, before):
        if node < heading and tree.text[tree.text_at[node] : tree.text_at[heading]].strip():
            break
        if tree.name[node] and (found := _id_of(tree, node)):
            return found
    return ""


def _id_of(tree: Tree, node: int) -> str:
    found = tree.attribute_of(node, "id")
    if not found and tree.tag(node) == "a":
        found = tree.attribute_of(node, "name")
    # HTML does not allow white space in an id; half characters cannot be sent.
    return found if found and not any(map(str.isspace, found)) else ""


def _plain(body: Body) -> Document:
    """Return the document of a text without markup: its paragraphs, or one block of code."""
    lines = "\n".join(map(str.rstrip, body.text.strip().splitlines()))
    shown = escape(lines, quote=False)
    if body.code is not None:
        code = (f"```{body.code}\n{lines}\n```",)
        return Document(blocks=code, html=f"<pre><code>{shown}</code></pre>")
    html = (f"<p>{each}</p>".replace("\n", "<br>") for each in _PARAGRAPHS.split(shown) if each)
    return Document(
        title=_words(body.title) or None,
        author=_words(body.author) or None,
        blocks=tuple(filter(None, _PARAGRAPHS.split(lines))),
        html="\n".join(html),
    )


_PARAGRAPHS: Final = re.compile(r"\n{2,}")

# -- metadata ------------------------------------------------------------------

#: Types of schema.org that are about the page's own content.
_CONTENT_TYPES: Final = re.compile(
    r"Article$|Posting$|^(?:Report|Product|Recipe|Course|Event|Book)$"
)
_PAGE_TYPES: Final = re.compile(r"Page$|List$")
_MOST_NODES: Final = 1_000
_LANGUAGE: Final = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*", re.IGNORECASE)
_DATE: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)? ?(Z|[+-]\d\d:?\d\d)?)?",
    re.IGNORECASE,
)
#: Names of ``meta`` elements with the dates of a page.
_PUBLISHED: Final = (
    *("article:published_time", "og:article:published_time", "date", "dc.date", "dcterms.created"),
)
_MODIFIED: Final = ("article:modified_time", "og:updated_time", "last-modified", "dcterms.modified")
_LINKED_DATA: Final = "application/ld+json"
_LONGEST_NAME: Final = 100
#: The separator between a title and the name of its site.
_SITE: Final = re.compile(r"\s+[|–—:·»-]\s+\S")


class _About:
    """The words of a page about itself: of its head, JSON-LD and microdata."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._metas: dict[str, str] = {}
        for node in tree.named("meta"):
            values = tree.attributes(node)
            name = values.get("property") or values.get("name") or values.get("itemprop")
            content = _words(values.get("content"))
            if name and content:
                self._metas.setdefault(name.strip().lower(), content)
        self.heading = title_of(tree)
        self._times = list(tree.named("time"))
        scripts = (it for it in tree.named("script") if self._says(it, "type", _LINKED_DATA))
        self._nodes = _linked_data([tree.text_of(script) for script in scripts])

    def _says(self, node: int, name: str, value: str) -> bool:
        return (self._tree.attribute_of(node, name) or "").lower() == value

    def _first(self, name: str, nodes: Iterable[int]) -> str | None:
        """Return an attribute of the first element that has it."""
        values = (self._tree.attribute_of(node, name) for node in nodes)
        return (next((it for it in values if it is not None), None) or "").strip() or None

    def _first_text(self, nodes: Iterable[int]) -> str:
        node = next(iter(nodes), None)
        return _words(self._tree.text_of(node)) if node is not None else ""

    def meta(self, *names: str) -> str | None:
        """Return the content of the first of these ``meta`` elements."""
        return next((self._metas[name] for name in names if name in self._metas), None)

    def said(self, name: str) -> str | None:
        """Return a text of JSON-LD about the content or the page."""
        values = (node.get(name) for node in self._nodes)
        return next((_words(v) for v in values if isinstance(v, str) and _words(v)), None)

    def title(self) -> str | None:
        """Return the title, without the name of the site where the first heading shows it."""
        found = self.said("headline") or self.meta("og:title") or self.heading
        heading = self._first_text(self._tree.named("h1"))
        if not found or (found.startswith(heading) and _SITE.match(found, len(heading))):
            found = heading or found
        return found or None

    def language(self) -> str | None:
        declared = self._tree.attributes(0)
        said = (declared.get("lang"), declared.get("xml:lang"), self.meta("og:locale"))
        tags = ((tag or "").strip().replace("_", "-") for tag in said)
        return next(filter(_LANGUAGE.fullmatch, tags), None)

    def author(self) -> str | None:
        for node in self._nodes:
            if names := list(dict.fromkeys(_names(node.get("author")))):
                return ", ".join(names)
        said = self.meta("author", "article:author", "dc.creator", "parsely-author")
        if said and "://" not in said:
            return said
        return next(filter(None, self._shown_authors()), "")[:_LONGEST_NAME] or None

    def _shown_authors(self) -> Iterator[str]:
        """Yield the name in an author's element, all of it, and the text of a link to an author."""
        tree = self._tree
        said = [(it, self._value(it, "itemprop")) for it in tree.saying("itemprop")]
        authors = [it for it, value in said if value == "author"]
        names = (
            name
            for name, value in said
            if value == "name" and any(author < name < tree.end[author] for author in authors)
        )
        yield self._first_text(names)
        yield self._first_text(authors)
        yield self._first_text(
            it for it in tree.saying("rel") if self._value(it, "rel") == "author"
        )

    def _value(self, node: int, name: str) -> str:
        return self._tree.attribute_of(node, name) or ""

    def date(self, name: str, *others: str) -> str | None:
        """Return a moment by its name in schema.org, or by names of ``meta`` elements."""
        said = (self.said(name), *map(self.meta, (name.lower(), *others)), *self._moments(name))
        return next((date for each in said if each and (date := _iso(each))), None)

    def _moments(self, name: str) -> Iterator[str | None]:
        """Yield the moments of ``time`` elements."""
        tree, times = self._tree, self._times
        own = (it for it in times if self._says(it, "itemprop", name.lower()))
        yield self._first("datetime", own)
        if name == "datePublished":
            told = (it for it in times if tree.attribute_of(it, "pubdate") is not None)
            yield self._first("datetime", told)
            for place in ("article", "main"):
                inside = (it for it in times if tree.place[it] & PLACES[place])
                yield self._first("datetime", inside)


def _words(text: str | None) -> str:
    # JSON may escape half characters, which UTF-8 cannot hold.
    return " ".join(unescape(text or "").split()).encode("utf-8", "replace").decode()


def _iso(text: str) -> str | None:
    """Return a date, or a date and time, of ISO 8601, or None if the text does not begin so."""
    if (match := _DATE.match(text.strip())) is None:
        return None
    found = "T".join(filter(None, match.groups()[:2])) + (match[3] or "").upper()
    try:
        datetime.fromisoformat(found)
    except ValueError:
        return None
    return found


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _names(value: Any) -> Iterator[str]:
    """Yield the names of persons or organisations."""
    for each in _each(value):
        name = each.get("name") if isinstance(each, dict) else each
        if isinstance(name, str) and (words := _words(name)) and "://" not in words:
            yield words


def _linked_data(texts: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the objects of JSON-LD that are about the content, then those about the page."""
    found = _objects(texts)
    _add_authors(found)
    return [
        node
        for about in (_CONTENT_TYPES, _PAGE_TYPES)
        for node in found
        if any(isinstance(kind, str) and about.search(kind) for kind in _each(node.get("@type")))
    ]


def _objects(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the objects of JSON-LD, the outer ones before those in them."""
    found: list[dict[str, Any]] = []
    for text in texts:
        try:
            pending = [json.loads(text, strict=False)]
        except (ValueError, RecursionError):
            continue
        while pending and len(found) < _MOST_NODES:
            value = pending.pop(0)
            if isinstance(value, list):
                pending += value[:_MOST_NODES]
            elif isinstance(value, dict):
                found.append(value)
                pending += [value[key] for key in ("@graph", "mainEntity") if key in value]
    return found


def _add_authors(nodes: Sequence[dict[str, Any]]) -> None:
    """Put authors that are named elsewhere in the place of references to them."""
    by_id = {node["@id"]: node for node in nodes if isinstance(node.get("@id"), str)}
    for node in nodes:
        author = node.get("author")
        if isinstance(author, dict) and "name" not in author:
            node["author"] = by_id.get(str(author.get("@id")))
