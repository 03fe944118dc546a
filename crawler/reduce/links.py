"""Links of a page: the elements that lead elsewhere, their targets and their anchors.

The compiled core resolves most references (``freshet/compiled/targets.c``), and asks about the
others; the tests have the same in Python (``tests/crawler/reduce/reference/links.py``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int64, c_size_t, c_uint64, c_void_p
from functools import lru_cache
from itertools import repeat
from secrets import randbits
from typing import Final, Self, TypeAlias

import numpy as np

from freshet.compiled import function
from freshet.crawler.fetch.responses import HTML_TYPES
from freshet.crawler.reduce.pieces import checked, columns_of
from freshet.crawler.reduce.tree import NAMES, NUMBERS, PLACES, TRAITS, Tree
from freshet.crawler.urls import base_at, canonical_of_resolved, resolve_all, without_fragment
from freshet.storage.identity import TRACKING_PARAMETERS
from freshet.storage.records import Links

#: Relations by which a page or a feed names its hub, and itself as the hub knows it.
HUB_RELATIONS: Final = frozenset({"hub", "self"})
_PAGE_TYPES: Final = HTML_TYPES | {""}
#: The same for the core, with a newline behind each.
PAGE_TYPES: Final = "".join(f"{name}\n" for name in sorted(_PAGE_TYPES)).encode()
_ANCHOR: Final = TRAITS["anchor"]


class _Told(Structure):
    """A page's links in the form for the core; the texts must live as long."""

    _fields_ = (
        *[(name, c_char_p) for name in "references relations anchors others kinds".split()],
        *[(name, c_char_p) for name in "navigable called home folder origin place".split()],
        ("tracking", c_char_p),
        *[(f"length{i}", c_size_t) for i in range(7)],
        ("keys", c_uint64 * 2),
    )  # fmt: skip


TRACKING: Final = "".join(f"{name}\n" for name in sorted(TRACKING_PARAMETERS)).encode()
NAVIGABLE: Final = "".join(f"{name}\n" for name in sorted(NAMES["navigable"])).encode()
#: Random keys of the core's hash of URLs, so that strangers cannot choose colliding URLs.
KEYS: Final = (c_uint64 * 2)(randbits(64), randbits(64))
#: What Python answers of an element that leads nowhere.
_NO_LINK: Final = 4 * "\0"
_read: Final = function("targets_read", [POINTER(_Told), c_void_p], c_int64)
_asked: Final = function("targets_asked", [c_void_p] * 3)
_written: Final = function("targets_written", [c_void_p, c_char_p, c_size_t], c_int64)
_found: Final = function("targets_found", [c_void_p] * 3)
_drop: Final = function("targets_drop", [c_void_p])


def links_of(tree: Tree, base: str, limit: int) -> tuple[Links, bool]:
    """Return a page's links, one for each canonical URL, and whether there are more.

    References are resolved against ``base``. For each URL the first link counts, or the first
    without ``nofollow``.

    Raises:
        MemoryError: there is too little memory.
    """
    texts = [each.encode() for each in (tree.references, tree.relations, tree.anchors)]
    rows = np.frombuffer(tree.links, np.uint32)
    others = np.flatnonzero(np.asarray(tree.trait)[rows] & _ANCHOR == 0)
    are_links = (np.asarray(tree.name)[rows[others]] == NUMBERS["link"]).tobytes()
    bases = parts_of(base).split(b"\0")[:-1]
    about = others.astype(np.uint32).tobytes(), are_links, NAVIGABLE, None
    columns = (*texts, *about, *bases, TRACKING)
    lengths = (*map(len, (*texts, others, NAVIGABLE, TRACKING)),)
    told = _Told(*columns, *lengths, limit, KEYS)
    core = c_void_p()
    try:
        checked(_read(told, byref(core)), tree)
        (asked,) = columns_of(_asked, core, 1)
        answers = _answers(tree, memoryview(asked).cast("I").tolist(), base) if asked else b""
        is_cut = _written(core, answers, len(answers))
        checked(min(0, is_cut), tree)
        found = [octets.decode().split("\0")[:-1] for octets in columns_of(_found, core, 4)]
    finally:
        _drop(core)
    return Links(*map(tuple, found)), is_cut > 0


def parts_of(base: str) -> bytes:
    """Return the prefixes to which the core adds simple references, with a NUL after each.

    They are the base, its folder, its origin, and the base without a query; all are empty if
    references cannot simply be added.
    """
    home, folder, origin = ("", "", "") if "@" in base else base_at(base).parts
    return f"{home}\0{folder}\0{origin}\0{home.partition('?')[0]}\0".encode()


def _answers(tree: Tree, asked: Sequence[int], base: str) -> bytes:
    references, relations_, anchors = (
        column.split("\n") for column in (tree.references, tree.relations, tree.anchors)
    )
    rows: list[LinkAsked] = []
    for i in asked:
        said, tag = tree.attributes(tree.links[i]), tree.tag(tree.links[i])
        if tag == "link":
            about = relations_[i], said.get("type", ""), said.get("title", "")
            rows.append(("link", references[i], *about))
        elif tree.trait[tree.links[i]] & _ANCHOR:
            rows.append(("anchor", references[i], relations_[i], "", anchors[i]))
        else:
            rows.append(("", references[i], "", "", said.get("title", "")))
    return answers_about(rows, base)


#: A link in a question of the core: "link", "anchor" or an empty text for others, its reference and
#: relations, its media type, and its anchor.
LinkAsked: TypeAlias = tuple[str, str, str, str, str]


def answers_about(rows: Sequence[LinkAsked], base: str) -> bytes:
    """Return the URL, the canonical URL, the relations and the anchor of each of these links."""
    leads = [kind != "link" or _leads_to_page(rel, it) for kind, _, rel, it, _ in rows]
    urls = resolve_all([reference for _, reference, _, _, _ in rows], base)
    found = [
        f"{url}\0{canonical_of_resolved(url)}\0{' '.join(tokens_of(rel))}\0{called}\0"
        if url is not None and is_one
        else _NO_LINK
        for (_, _, rel, _, called), url, is_one in zip(rows, urls, leads, strict=True)
    ]
    return "".join(found).encode()


@lru_cache(maxsize=1024)
def _leads_to_page(rel: str, media_type: str) -> bool:
    return leads_to_page({"rel": rel, "type": media_type})


def gathered(found: Iterable[tuple[str, str, str]], limit: int) -> tuple[Links, bool]:
    """Return links as columns, one entry for each canonical URL, and whether there are more.

    ``found`` has fetch URLs (resolved, without fragments), relations and anchors. For each URL
    the first occurrence counts, or the first without ``nofollow``.
    """
    links: dict[str, tuple[str, str, str]] = {}
    is_cut = False
    for link in found:
        url = canonical_of_resolved(link[0])
        if url not in links:
            is_cut = len(links) >= limit
            if is_cut:
                break
        elif "nofollow" not in links[url][1].split() or "nofollow" in link[1].split():
            continue
        links[url] = link
    columns = zip(*links.values(), strict=True) if links else ((), (), ())
    return Links(tuple(links), *columns), is_cut


def relations(attributes: Mapping[str, str]) -> Sequence[str]:
    """Return the distinct tokens of a rel attribute, lower-case and sorted."""
    return tokens_of(attributes.get("rel", ""))


# Pages name few different ones.
@lru_cache(maxsize=1024)
def tokens_of(rel: str) -> Sequence[str]:
    """Return the distinct tokens of a text, lower-case and sorted."""
    return tuple(sorted(set(rel.lower().split())))


def leads_to_page(attributes: Mapping[str, str]) -> bool:
    """Return whether a ``link`` element leads to a page for people."""
    tokens = relations(attributes)
    return (
        not NAMES["navigable"].isdisjoint(tokens)
        and "stylesheet" not in tokens
        and _named_type(attributes.get("type", "")) in _PAGE_TYPES
    )


def is_feed(tokens: Sequence[str], media_type: str) -> bool:
    """Return whether a link names a feed (RSS autodiscovery, Atom, JSON Feed)."""
    if "feed" in tokens:
        return True
    return "alternate" in tokens and _named_type(media_type) in NAMES["feed_types"]


@lru_cache(maxsize=256)
def _named_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


# WHATWG HTML, section 4.2.5.3, "shared declarative refresh steps".
_REFRESH: Final = re.compile(
    r"""[\t\n\f\r ]* (\d++|(?=\.)) [\d.]*+ (?>[\t\n\f\r ]*[;,]|[\t\n\f\r ]) [\t\n\f\r ]*+
    (?>url [\t\n\f\r ]* = [\t\n\f\r ]*|) (?: "([^"]*) | '([^']*) | (.+) )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MAX_DELAY_S: Final = 10.0**9
#: A redirect in the page itself: the seconds before it, and the resolved URL.
MetaRefresh: TypeAlias = tuple[float, str]


#: An element's statement about the page: its tag, and three texts. "title": a text that is not
#: empty; "lang": the language tag of the root; "meta": its pragma, name and content, "noscript" if
#: it counts without scripts only; "link": its relations, media type and reference. The core
#: leaves out those that :class:`PageHead` does not ask for.
HeadRow: TypeAlias = tuple[str, str, str, str]


def rows_of(tree: Tree) -> Iterator[HeadRow]:
    """Yield the statements of a page's elements about the whole page."""
    root = tree.attributes(0)
    yield "lang", root.get("lang") or root.get("xml:lang") or "", "", ""
    for node in tree.named("title"):
        text = " ".join(tree.text_of(node).split())
        if text and not tree.place[node] & PLACES["drawing"]:
            yield "title", text, "", ""
    for said in map(tree.attributes, tree.named("link")):
        if "href" in said:
            yield "link", said.get("rel", ""), said.get("type", ""), said["href"]
    yield from _metas_of(tree)


def _metas_of(tree: Tree) -> Iterator[HeadRow]:
    for node in tree.named("meta"):
        said = tree.attributes(node)
        if "content" in said:
            is_other = tree.place[node] & PLACES["noscript"]
            pragma, name = said.get("http-equiv", ""), said.get("name", "")
            yield "noscript" if is_other else "meta", pragma, name, said["content"]


def base_of(tree: Tree, url: str) -> str:
    """Return the base of the references of a page at ``url``."""
    said = map(tree.attributes, tree.named("base"))
    # The first counts, if it is usable.
    return base_by(next((each["href"] for each in said if "href" in each), ""), url)


def base_by(reference: str, url: str) -> str:
    """Return the base that an element with that reference makes of its page's URL."""
    return http_url(reference, url) or without_fragment(url)


#: The name of the element that reserves text and data mining
#: (:mod:`freshet.crawler.robots.preferences`).
TDM_META: Final = "tdm-reservation"
#: Pragmas and relations for which the head is read.
PRAGMAS: Final = ("refresh", "content-language")
RELATIONS: Final = ("canonical", "alternate", "feed", *sorted(HUB_RELATIONS))


class PageHead:
    """A page's statements about itself; its references are relative to ``base_url``."""

    def __init__(self, rows: Iterable[HeadRow], base_url: str) -> None:
        self.base_url = base_url
        said = list(rows)
        self._metas = [row for row in said if row[0] in {"meta", "noscript"}]
        links = [row for row in said if row[0] == "link"]
        self._links = [(tokens_of(rel), kind, reference) for _, rel, kind, reference in links]
        named = {tag: text for tag, text, _, _ in reversed(said) if text}
        self._title, self._language = named.get("title"), named.get("lang", "")

    @classmethod
    def of(cls, tree: Tree, url: str) -> Self:
        """Return the head of a page from ``url``."""
        return cls(rows_of(tree), base_of(tree, url))

    def title(self) -> str | None:
        """Return the first title with a text, without titles of drawings."""
        return self._title

    def language(self) -> str | None:
        """Return the language tag of the document (HTML, section 3.2.6.2), as written."""
        said = [content.strip() for content in self._pragmas("content-language")]
        named = [content for content in said if "," not in content]
        return self._language.strip() or (named[0] if named else "") or None

    def _pragmas(self, name: str) -> list[str]:
        return [content for _, pragma, _, content in self._metas if pragma.strip().lower() == name]

    def canonical(self) -> str | None:
        """Return the canonical URL that the page names."""
        hints = [href for tokens, _, href in self._links if "canonical" in tokens]
        return next(filter(None, self._resolved(hints)), None) if hints else None

    def feeds(self) -> tuple[str, ...]:
        """Return the feeds that the page names."""
        # Most alternates are translations, which name no type.
        named = [
            href
            for tokens, kind, href in self._links
            if "feed" in tokens or (kind and is_feed(tokens, kind))
        ]
        return tuple(dict.fromkeys(filter(None, self._resolved(named)))) if named else ()

    def hub_links(self) -> tuple[tuple[str, str], ...]:
        """Return the links of relation hub and self, resolved (W3C WebSub, section 4)."""
        named = [(it, href) for tokens, _, href in self._links for it in tokens]
        hubs = [(token, href) for token, href in named if token in HUB_RELATIONS]
        if not hubs:
            return ()
        urls = self._resolved([href for _, href in hubs])
        return tuple([(token, url) for (token, _), url in zip(hubs, urls, strict=True) if url])

    def _resolved(self, references: Sequence[str]) -> list[str | None]:
        return [*map(http_url, references, repeat(self.base_url))]

    def meta_refresh(self) -> MetaRefresh | None:
        """Return the first refresh that leads elsewhere, and that scripts would not prevent."""
        # With scripts, the elements for browsers without scripts do not count.
        said = [
            content
            for tag, pragma, _, content in self._metas
            if tag == "meta" and pragma.strip().lower() == "refresh"
        ]
        return next(filter(None, map(refresh_of, said, repeat(self.base_url))), None)

    def robots_meta(self, agent_token: str) -> tuple[str, ...]:
        """Return the directives to all robots, and to the one of that name.

        A reservation of text and data mining is one more, with its name.
        """
        names = {"robots": "", agent_token.lower(): "", TDM_META: f"{TDM_META}: "}
        said = [(name.strip().lower(), content) for _, _, name, content in self._metas]
        return tuple([names[name] + content for name, content in said if name in names])


def refresh_of(text: str, base: str) -> MetaRefresh | None:
    """Parse a refresh of a page or of the header of that name, if it leads elsewhere."""
    match = _REFRESH.match(text)
    url = http_url(match[2] or match[3] or match[4] or "", base) if match else None
    return (min(float(match[1] or 0), _MAX_DELAY_S), url) if match and url else None


def http_url(reference: str, base: str) -> str | None:
    """Return the URL of a page that a reference leads to, without its fragment."""
    return base_at(base).http_url(reference)
