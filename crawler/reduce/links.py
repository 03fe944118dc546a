"""Links of a page: which elements lead elsewhere, where to, and what they are called.

The compiled core resolves most references (``freshet/compiled/targets.c``), and asks about the
others; the tests have the same in Python (``tests/crawler/reduce/reference/links.py``).
"""

from collections.abc import Iterable, Mapping, Sequence
from ctypes import POINTER, Structure, byref, c_char_p, c_int64, c_size_t, c_uint64, c_void_p
from functools import lru_cache
from secrets import randbits
from typing import Final, TypeAlias

import numpy as np

from freshet.compiled import function
from freshet.crawler.fetch.responses import HTML_TYPES
from freshet.crawler.reduce.nesting import NAMES
from freshet.crawler.reduce.pieces import checked, columns_of
from freshet.crawler.reduce.tree import NUMBERS, TRAITS, Tree
from freshet.crawler.urls import base_at, canonical_of_resolved, resolve_all
from freshet.storage.identity import TRACKING_PARAMETERS
from freshet.storage.records import Links

#: Relations by which a page or a feed names its hub, and itself as the hub knows it.
HUB_RELATIONS: Final = frozenset({"hub", "self"})
_PAGE_TYPES: Final = HTML_TYPES | {""}
#: The same for the core, with a newline behind each.
PAGE_TYPES: Final = "".join(f"{name}\n" for name in sorted(_PAGE_TYPES)).encode()
_ANCHOR: Final = TRAITS["anchor"]


class _Told(Structure):
    """A page's links, as the core is told of them; the texts must live as long."""

    _fields_ = (
        *[(name, c_char_p) for name in "references relations anchors others kinds".split()],
        *[(name, c_char_p) for name in "navigable called home folder origin place".split()],
        ("tracking", c_char_p),
        *[(f"length{i}", c_size_t) for i in range(7)],
        ("keys", c_uint64 * 2),
    )  # fmt: skip


TRACKING: Final = "".join(f"{name}\n" for name in sorted(TRACKING_PARAMETERS)).encode()
NAVIGABLE: Final = "".join(f"{name}\n" for name in sorted(NAMES["navigable"])).encode()
#: Strangers who choose URLs do not know what the core tells them apart by.
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

    References are resolved against ``base``. Of a URL the first link counts, or the first that does
    not say ``nofollow``.

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
    """Return what the core adds simple references to, with a NUL behind each.

    That is the base, its folder, its origin, and the base without a query; all are empty if nothing
    is simply added to it.
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


#: A link about which the core asks: whether it is a "link", an "anchor" or something else (an empty
#: text), its reference and relations, its media type, and what it is called.
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
    return _named_type(attributes.get("type", ""))


@lru_cache(maxsize=256)
def _named_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()
