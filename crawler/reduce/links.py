"""Links of a page: which elements lead elsewhere, where to, and what they are called.

The compiled core resolves most references (``freshet/compiled/targets.c``), and asks about the
others; the tests have the same in Python (``tests/crawler/reduce/reference/links.py``).
"""

from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int64, c_size_t, c_uint64, c_void_p
from functools import lru_cache
from secrets import randbits
from typing import Final

import numpy as np

from freshet.compiled import function
from freshet.crawler.fetch.responses import HTML_TYPES
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.reduce.pieces import checked, columns_of
from freshet.crawler.reduce.tree import NUMBERS, TRAITS, Tree
from freshet.crawler.urls import Base, canonical_of_resolved, resolve_all
from freshet.storage.identity import TRACKING_PARAMETERS
from freshet.storage.records import Links

#: Relations by which a page or a feed names its hub, and itself as the hub knows it.
HUB_RELATIONS: Final = frozenset({"hub", "self"})
_PAGE_TYPES: Final = HTML_TYPES | {""}
_ANCHOR: Final = TRAITS["anchor"]


class _Told(Structure):
    """A page's links, as the core is told of them; the texts must live as long."""

    _fields_ = (
        *[(name, c_char_p) for name in "references relations anchors others are_links".split()],
        *[(name, c_char_p) for name in "navigable home folder origin place tracking".split()],
        *[(f"length{i}", c_size_t) for i in range(7)],
        ("keys", c_uint64 * 2),
    )  # fmt: skip


_TRACKING: Final = "".join(f"{name}\n" for name in sorted(TRACKING_PARAMETERS)).encode()
_NAVIGABLE: Final = "".join(f"{name}\n" for name in sorted(NAMES["navigable"])).encode()
#: Strangers who choose URLs do not know what the core tells them apart by.
_KEYS: Final = (c_uint64 * 2)(randbits(64), randbits(64))
#: What Python answers of an element that leads nowhere.
_NO_LINK: Final = 4 * "\0"
_read: Final = function("targets_read", [POINTER(_Told), c_void_p], c_int64)
_asked: Final = function("targets_asked", [c_void_p] * 3)
_written: Final = function("targets_written", [c_void_p, c_char_p, c_size_t], c_int64)
_found: Final = function("targets_found", [c_void_p] * 3)
_drop: Final = function("targets_drop", [c_void_p])


def links_of(tree: Tree, base: str, limit: int) -> tuple[Links, bool]:
    """Return a page's links, one for each canonical URL, and whether there are more.

    References are resolved against ``base``. Of a URL the first link counts, or the first that does
    not say ``nofollow``.

    Raises:
        MemoryError: there is too little memory.
    """
    texts = [each.encode() for each in (tree.references, tree.relations, tree.anchors)]
    rows = np.frombuffer(tree.links, np.uint32)
    others = np.flatnonzero(np.asarray(tree.trait)[rows] & _ANCHOR == 0)
    are_links = (np.asarray(tree.name)[rows[others]] == NUMBERS["link"]).tobytes()
    place = Base(base)
    home, folder, origin = ("", "", "") if "@" in base else place.parts
    bases = home, folder, origin, home.partition("?")[0]
    about = others.astype(np.uint32).tobytes(), are_links, _NAVIGABLE
    columns = (*texts, *about, *map(str.encode, bases), _TRACKING)
    lengths = (*map(len, (*texts, others, _NAVIGABLE, _TRACKING)),)
    told = _Told(*columns, *lengths, limit, _KEYS)
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


def _answers(tree: Tree, asked: Sequence[int], base: str) -> bytes:
    """Return the URL, the canonical URL, the relations and the anchor of each of these links."""
    references, relations_, anchors = (
        column.split("\n") for column in (tree.references, tree.relations, tree.anchors)
    )
    found = dict.fromkeys(asked, _NO_LINK)
    rows = [i for i in asked if _may_lead(tree, tree.links[i])]
    urls = resolve_all([references[i] for i in rows], base)
    for i, url in zip(rows, urls, strict=True):
        if url is not None:
            node = tree.links[i]
            is_anchor = tree.trait[node] & _ANCHOR
            anchor = anchors[i] if is_anchor else tree.attribute_of(node, "title") or ""
            rels = _sorted(relations_[i]) if is_anchor or tree.tag(node) == "link" else ""
            found[i] = f"{url}\0{canonical_of_resolved(url)}\0{rels}\0{anchor}\0"
    return "".join(found.values()).encode()


def _may_lead(tree: Tree, node: int) -> bool:
    """Return whether an element with a reference leads to a page for people."""
    return tree.tag(node) != "link" or leads_to_page(tree.attributes(node))


def gathered(found: Iterable[tuple[str, str, str]], limit: int) -> tuple[Links, bool]:
    """Return links as columns, one entry for each canonical URL, and whether there are more.

    ``found`` has fetch URLs (resolved, without fragments), relations and anchors. Of a URL the
    first occurrence counts, or the first that does not say ``nofollow``.
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


def _sorted(rel: str) -> str:
    return " ".join(tokens_of(rel))


def leads_to_page(attributes: Mapping[str, str]) -> bool:
    """Return whether a ``link`` element leads to a page for people."""
    tokens = relations(attributes)
    return (
        not NAMES["navigable"].isdisjoint(tokens)
        and "stylesheet" not in tokens
        and _media_type(attributes) in _PAGE_TYPES
    )


def is_feed(attributes: Mapping[str, str], tokens: Sequence[str]) -> bool:
    """Return whether a ``link`` element names a feed (RSS autodiscovery, Atom, JSON Feed).

    ``tokens`` are its relations.
    """
    return "feed" in tokens or (
        "alternate" in tokens and _media_type(attributes) in NAMES["feed_types"]
    )


def _media_type(attributes: Mapping[str, str]) -> str:
    return attributes.get("type", "").partition(";")[0].strip().lower()
