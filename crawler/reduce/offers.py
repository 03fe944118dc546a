"""Prices on a page: those that schema.org's terms state first, then numbers with a currency.

``freshet watch`` asks for them once; a crawl never does.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from freshet.crawler.reduce.numbers import NUMBER, PRICE, value_of
from freshet.crawler.reduce.page import dom_of, markup_of, selectors_of

#: Nodes of a tree or of linked data that are looked at, and numbers that are returned.
_MOST_NODES: Final = 50_000
_MOST_OFFERS: Final = 20
#: Characters of an element that shows a price, and how far around its digits it may reach.
_LONGEST: Final = 80
_STEPS: Final = 4
#: Characters before a price that distinguish it from other numbers of its element.
_CONTEXT: Final = 20
_FRAMES: Final = frozenset({"header", "nav", "footer", "aside"})
_STRUCK: Final = frozenset({"del", "s", "strike"})
_FORMER: Final = re.compile(
    r"(?<![a-z])(?:old|was|before|regular|strike|crossed|uvp|rrp|msrp)", re.IGNORECASE
)
#: As JSON and microdata have it.
_PLAIN: Final = re.compile(r"\d+(\.\d+)?")
_SAYS_PRICE: Final = re.compile(
    r"price|preis|prix|prezzo|preci|preço|cena|pris|pret", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A price on a page: its value, the text that shows it, and a selector of that element.

    ``number`` is empty if the price is the first number there; else it is the text around it, with
    ``*`` in its place, as in alert rules. ``is_stated``: the page's data has it as well.
    """

    value: float
    text: str
    selector: str
    number: str
    is_stated: bool


@dataclass(frozen=True, slots=True)
class Offers:
    """The prices that a page shows, the most likely one first, and those that its data states."""

    shown: tuple[Offer, ...] = ()
    stated: tuple[float, ...] = ()


def offers(body: bytes, content_type: str | None, *, deepest: int | None = None) -> Offers:
    """Return the prices on a page.

    Stated prices are offers in JSON-LD, microdata, RDFa and ``meta`` elements (schema.org, Open
    Graph). Shown prices are numbers with a currency: stated ones are first, struck-out ones and
    those in the page's frame last.

    Raises:
        RecursionError: the tree has more than ``deepest`` levels.
    """
    tree = dom_of(markup_of(body, content_type), deepest)
    stated = tuple(dict.fromkeys(_stated(tree)))
    tree.strip_tags(["script", "style", "svg", "template"])
    shown = list(_shown(tree))
    order = sorted(range(len(shown)), key=lambda i: (*_against(shown[i], stated), i))
    found = tuple(_offer(tree, shown[i], stated) for i in order[:_MOST_OFFERS])
    return Offers(found, stated)


# -- stated prices -------------------------------------------------------------


def _stated(tree: LexborHTMLParser) -> Iterator[float]:
    for script in tree.css('script[type="application/ld+json" i]'):
        try:
            yield from _priced(json.loads(script.text(), strict=False))
        except (ValueError, RecursionError):
            continue
    for node in tree.css("[itemprop~=price i], [itemprop~=lowPrice i], [property~=price i]"):
        yield from _value(node.attributes.get("content") or node.text())
    for name in ("product:price:amount", "og:price:amount"):
        for node in tree.css(f'meta[property="{name}" i], meta[name="{name}" i]'):
            yield from _value(node.attributes.get("content"))


def _priced(data: object) -> Iterator[float]:
    """Yield the prices of the offers in linked data, in the order of the document."""
    pending, left = [data], _MOST_NODES
    while pending and (left := left - 1):
        node = pending.pop()
        if isinstance(node, list):
            pending += reversed(node)
        elif isinstance(node, dict):
            for name in ("price", "lowPrice"):
                yield from _value(node.get(name))
            pending += reversed([each for each in node.values() if isinstance(each, dict | list)])


def _value(said: object) -> Iterator[float]:
    """Yield the value of a price in data, where a lone point is a decimal mark."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        yield float(said)
    elif isinstance(said, str) and (match := NUMBER.search(said)):
        number = match[0]
        value = float(number) if _PLAIN.fullmatch(number) else value_of(number)
        if value is not None:
            yield value


# -- shown prices --------------------------------------------------------------


class _Shown(NamedTuple):
    """The innermost element that shows a price, its text, the value, and the text before it."""

    node: LexborNode
    text: str
    value: float
    before: str


def _shown(tree: LexborHTMLParser) -> Iterator[_Shown]:
    seen = set[int]()
    nodes = tree.body.traverse(include_text=True) if tree.body else iter(())
    for node in islice(nodes, _MOST_NODES):
        if node.is_text_node and any(map(str.isdigit, node.text_content or "")):
            found = _around(node.parent)
            if found is not None and found.node.mem_id not in seen:
                seen.add(found.node.mem_id)
                yield found


def _around(node: LexborNode | None) -> _Shown | None:
    for _ in range(_STEPS):
        if node is None or node.tag in {"body", "html"} or _has_raised_digits(node):
            return None
        text = " ".join(node.text().split())
        if len(text) > _LONGEST:
            return None
        for match in PRICE.finditer(text):
            if (value := value_of(match["behind"] or match["before"])) is not None:
                return _Shown(node, text, value, text[: match.start(match.lastgroup or 0)])
        node = node.parent
    return None


def _has_raised_digits(node: LexborNode) -> bool:
    """Return whether digits are raised, like cents: texts do not keep that (29⁹⁹ is 2999)."""
    return node.tag == "sup" or any(re.search(r"\d", each.text()) for each in node.css("sup"))


def _against(shown: _Shown, stated: Sequence[float]) -> tuple[bool, bool, bool, bool]:
    """Return what speaks against a price, the weightiest first."""
    above = list(_ancestors(shown.node))
    near = [shown.node, *above[:_STEPS]]
    names = ("class", "id", "itemprop")
    words = " ".join(each.attributes.get(name) or "" for each in near for name in names)
    is_former = bool(_FORMER.search(words)) or any(each.tag in _STRUCK for each in near)
    is_framed = any(each.tag in _FRAMES for each in above)
    return shown.value not in stated, is_former, is_framed, not _SAYS_PRICE.search(words)


def _ancestors(node: LexborNode) -> Iterator[LexborNode]:
    while (parent := node.parent) is not None:
        yield (node := parent)


def _offer(tree: LexborHTMLParser, shown: _Shown, stated: Sequence[float]) -> Offer:
    node, text, value, before = shown
    alone = (it for it in selectors_of(node) if [n.mem_id for n in tree.css(it)] == [node.mem_id])
    is_first = not NUMBER.search(before)
    number = "" if is_first else f"{before[-_CONTEXT:].lstrip()}*"
    return Offer(value, text, next(alone, ""), number, value in stated)


def as_offers(shown: Sequence[Any], stated: Sequence[float]) -> Offers:
    """Return what :func:`offers` found in another process."""
    return Offers(tuple(Offer(**each) for each in shown), tuple(stated))
