"""The links of a page, as the compiled core finds them (``freshet/compiled/targets.c``)."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from freshet.crawler.reduce.links import leads_to_page, relations
from freshet.crawler.reduce.tree import TRAITS, Tree
from freshet.crawler.urls import resolve_all

_ANCHOR: Final = TRAITS["anchor"]
_BATCH: Final = 1024


def page_links(tree: Tree, base: str) -> Iterator[tuple[str, str, str]]:
    """Yield URLs (resolved against ``base``), relations and anchors of a page's links."""
    first: dict[tuple[str, str], str] = {}
    columns = (column.split("\n") for column in (tree.references, tree.relations, tree.anchors))
    for node, reference, rel, anchor in zip(tree.links, *columns, strict=False):
        if not tree.trait[node] & _ANCHOR:
            said = tree.attributes(node)
            if tree.tag(node) != "link":
                first.setdefault((reference, ""), said.get("title", ""))
            elif leads_to_page(said):
                first.setdefault((reference, _sorted(rel)), said.get("title", ""))
        elif rel:
            first.setdefault((reference, _sorted(rel)), anchor)
        elif (reference, "") not in first:
            first[reference, ""] = anchor
    remaining = iter(first.items())
    # In batches, so that a page of a million links stops at the limit.
    while batch := list(islice(remaining, _BATCH)):
        urls = resolve_all([reference for (reference, _), _ in batch], base)
        for url, ((_, rels), anchor) in zip(urls, batch, strict=True):
            if url is not None:
                yield url, rels, anchor


def _sorted(rel: str) -> str:
    return " ".join(relations({"rel": rel}))
